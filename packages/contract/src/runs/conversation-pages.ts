/** Pages of a run's conversation. The first page has the end of the conversation. */
import { z } from 'zod';
import { Text } from '../wire/primitives.ts';
import { ActionOutputEvent, ActionResultEvent } from './agent-events.ts';
import { Message, Step } from './conversations.ts';

/** Query of `GET /agent/runs/{runId}/conversation/messages`. */
export const ListRunMessagesQuery = z.object({
  limit: z.int().min(1).max(500).default(100).meta({
    description:
      'Messages of a page. A page has fewer if they are long, and a few more so that it begins between two actions',
  }),
  before: Text.max(8192)
    .optional()
    .meta({ description: '`older` of a page: the answer has the messages before it. Default: the newest messages' }),
});

/** A message of a page. */
export const PagedMessage = Message.extend({
  seq: z
    .int()
    .describe(
      'Number of the first event of the message in the stream of the run. An action and its result have the same',
    ),
  whole_bytes: z
    .int()
    .optional()
    .describe(
      'Size of the whole content in bytes, of which this block has only head and tail; `getRunMessage` returns the whole content. Absent: nothing is left out',
    ),
}).meta({ id: 'PagedMessage', description: 'A message of a page of a conversation' });

/** The part of a step that is on a page. */
export const PagedStep = Step.omit({ messages: true, steps: true })
  .extend({ messages: z.array(PagedMessage).describe('Messages of the step that are on this page, oldest first') })
  .meta({
    id: 'PagedStep',
    description:
      'The part of a step that is on a page. `started_at` is on the page with its first message, `summary` and `completed_at` on the page with its end',
  });
export type PagedStep = z.infer<typeof PagedStep>;

/** A piece of an action whose beginning is on an older page. */
const ContinuedEvent = z
  .discriminatedUnion('type', [ActionOutputEvent, ActionResultEvent])
  .meta({ id: 'ContinuedEvent', description: 'Output or result of an action that began on an older page' });
export type ContinuedEvent = z.infer<typeof ContinuedEvent>;

/** A page of a run's conversation. */
export const RunMessagePage = z
  .object({
    conversation_id: z.string().describe('Id of the conversation'),
    steps: z.array(PagedStep).describe('Steps with their messages on this page, oldest first'),
    continued: z
      .array(ContinuedEvent)
      .describe(
        'Events that arrived, in the time of this page, for actions on older pages. Apply them to those actions like the events of the stream',
      ),
    reached: z
      .string()
      .describe(
        "Id of the run's last event when the page was read: send it as `Last-Event-ID` to continue the stream of the run after the newest page",
      ),
    older: z.string().optional().describe('`before` of the next page; absent: the conversation begins on this page'),
  })
  .meta({
    id: 'RunMessagePage',
    description:
      'A page of a conversation. Parts of one text with the same `message_id` can be on two pages: join them, the older part first',
  });
export type RunMessagePage = z.infer<typeof RunMessagePage>;
