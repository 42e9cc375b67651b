/** Find in the conversation of a run. */
import { z } from 'zod';
import { NonBlank, Timestamp } from '../wire/primitives.ts';

const MatchKind = z.enum(['turn', 'text', 'action', 'notice', 'request']).meta({
  id: 'RunMatchKind',
  description:
    '`turn`: the message with which a turn begins. `text`: a message of the agent. `action`: a tool call with its output. `notice`: a notice of the agent. `request`: a question or a request for permission, with its answer',
});

/** Query of `GET /agent/runs/{runId}/conversation/find`. */
export const FindInRunQuery = z.object({
  text: NonBlank.max(200).optional().meta({
    description:
      'Text that a message contains, in upper or lower case. It is literal: no character has a special meaning. Default: all messages of `kind`',
  }),
  kind: z
    .enum(['any', 'turn', 'failure'])
    .meta({
      id: 'FindInRunKind',
      description:
        '`turn`: only messages with which a turn begins. `failure`: only actions that failed or whose exit code is not 0',
    })
    .default('any'),
  after: z
    .int()
    .min(0)
    .default(0)
    .meta({ description: '`seq` of the last match of the page before. Default: the first page' }),
  limit: z.int().min(1).max(200).default(50).meta({ description: 'Matches of a page' }),
});
export type FindInRunQuery = z.infer<typeof FindInRunQuery>;

/** A message that was found. */
const RunMatch = z
  .object({
    seq: z
      .int()
      .describe(
        'Number of the first event of the message in the stream of the run, as on the pages of the conversation',
      ),
    kind: MatchKind,
    is_failed: z.boolean().optional().describe('True: the action failed. Absent: it did not'),
    occurred_at: Timestamp.describe('Time of the first event of the message'),
    excerpt: z.string().describe('At most 240 characters of the message around the first place with the text'),
  })
  .meta({ id: 'RunMatch', description: 'A message of a conversation that was found' });
export type RunMatch = z.infer<typeof RunMatch>;

/** A page of found messages. */
export const RunMatches = z
  .object({
    count: z.int().describe('Number of matches on all pages; 0 if this page has none'),
    matches: z.array(RunMatch).describe('Found messages, oldest first'),
  })
  .meta({ id: 'RunMatches', description: 'Messages of a conversation that were found' });
export type RunMatches = z.infer<typeof RunMatches>;
