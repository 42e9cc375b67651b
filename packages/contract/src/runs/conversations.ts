import { z } from 'zod';
import { NonBlank, Timestamp, Uuid } from '../wire/primitives.ts';
import { AnsweredBy, RunMode } from './message-origin.ts';

/** The kind of work of an action. */
export const ActionCategory = z
  .enum(['command', 'files', 'search', 'integration', 'documents', 'computer', 'review', 'skill'])
  .meta({ id: 'ActionCategory', description: 'Kind of work of an action' });
export type ActionCategory = z.infer<typeof ActionCategory>;

/** State of an action's result. */
export const ActionState = z.enum(['running', 'completed', 'failed', 'denied']).meta({
  id: 'ActionState',
  description:
    'The state of an action. `failed`: it ended with an error; `denied`: a person or the approval policy refused it',
});
export type ActionState = z.infer<typeof ActionState>;

/** Text of a message. */
export const TextBlock = z
  .object({
    type: z.literal('text').describe('Kind of the block'),
    text: z.string().describe('The text'),
    message_id: z.string().optional().describe('Id of the message it is part of'),
  })
  .meta({ id: 'TextBlock', description: 'Text of a message' });

/** A tool call. */
export const ActionBlock = z
  .object({
    type: z.literal('action').describe('Kind of the block'),
    id: z.string().describe('Id of the action; its result names it as `action_id`'),
    category: ActionCategory,
    name: z.string().describe('Name of the tool'),
    input: z
      .record(z.string(), z.unknown())
      .describe('Arguments of the tool call; `text` if the harness gave no object. Of over 64 KB: head, tail and size'),
    message_id: z.string().optional().describe('Id of the message it is part of'),
  })
  .meta({ id: 'ActionBlock', description: 'A tool call' });

/** The output of a tool call. */
export const ActionOutput = z
  .object({
    text: z.string().describe('Output of the tool; JSON if it is not text. Of over 64 KB: head, tail and size'),
    exit_code: z.int().optional().describe('Exit code of the command; 128 + signal if a signal ended it'),
    duration_ms: z
      .number()
      .optional()
      .describe('Milliseconds that the call ran, without its wait for a person; absent if it never ran'),
    output_artifact_uid: z
      .string()
      .optional()
      .describe('UID of the FILE artifact with the whole output, up to the limit of the team; absent: there is none'),
  })
  .meta({ id: 'ActionOutput', description: 'The output of a tool call, and how it ended' });
export type ActionOutput = z.infer<typeof ActionOutput>;

/** The result of a tool call. */
export const ActionResultBlock = z
  .object({
    type: z.literal('action_result').describe('Kind of the block'),
    action_id: z.string().describe('Id of the action that this result belongs to'),
    category: ActionCategory,
    name: z.string().describe('Name of the tool'),
    state: ActionState,
    output: ActionOutput,
    message_id: z.string().optional().describe('Id of the message it is part of'),
  })
  .meta({ id: 'ActionResultBlock', description: 'The result of a tool call' });

/** A report of the harness that is neither text nor an action. */
export const EventBlock = z
  .object({
    type: z.literal('event').describe('Kind of the block'),
    name: z.string().describe('Kind of the event, as the harness names it'),
    data: z
      .record(z.string(), z.unknown())
      .describe('Content of the event, as the harness gave it; `text` if it gave no object'),
    message_id: z.string().optional().describe('Id of the message it is part of'),
  })
  .meta({ id: 'EventBlock', description: 'Any other report of the harness' });

export const ContentBlock = z
  .discriminatedUnion('type', [TextBlock, ActionBlock, ActionResultBlock, EventBlock])
  .meta({ id: 'ContentBlock', description: 'A piece of a message' });
export type ContentBlock = z.infer<typeof ContentBlock>;

export const MessageRole = z
  .enum(['user', 'assistant', 'tool', 'system'])
  .meta({ id: 'MessageRole', description: 'Who said it' });
export type MessageRole = z.infer<typeof MessageRole>;

export const Message = z
  .object({
    role: MessageRole,
    content: z.array(ContentBlock).describe('Pieces of the message, in their order'),
    timestamp: Timestamp.optional().describe('Time of the message, RFC 3339 in UTC'),
    message_ids: z
      .array(z.string())
      .optional()
      .describe("Ids of the harness's messages from which this message was composed"),
    request_id: z.string().optional().describe('Request to a person to which the message belongs'),
    sent_by: AnsweredBy.optional().describe('Of the messages of users: the sender. Absent: the creator of the run'),
    mode: RunMode.optional().describe('Of the messages of users: the mode of the follow-up'),
  })
  .meta({ id: 'Message', description: 'A message of a conversation' });
export type Message = z.infer<typeof Message>;

/** One prompt of a user and the agent's work on this prompt. The work of subagents is nested in the step. */
export const Step = z
  .object({
    id: z.string().describe('Id of the step'),
    description: z.string().optional().describe('Message of the user'),
    summary: z.string().optional().describe("The agent's own summary"),
    started_at: Timestamp.optional().describe('When work on the prompt began, RFC 3339 in UTC'),
    completed_at: Timestamp.optional().describe(
      'When work on the prompt ended, RFC 3339 in UTC; absent: it has not ended',
    ),
    messages: z.array(Message).describe("Messages, oldest first; the first is the user's"),
    get steps() {
      return z.array(Step).describe('Delegated work');
    },
  })
  .meta({ id: 'Step', description: "One user prompt and the agent's work on it" });
export type Step = z.infer<typeof Step>;

export const ConversationResponse = z
  .object({
    conversation_id: z.string().describe('Id of the conversation'),
    title: z
      .string()
      .optional()
      .describe('Absent if nobody has named the conversation; its runs have their own titles'),
    steps: z.array(Step).describe('One step for each prompt, oldest first'),
  })
  .meta({ id: 'ConversationResponse', description: 'A conversation: prompts and the work on them' });
export type ConversationResponse = z.infer<typeof ConversationResponse>;

/** The page to which the link of a session leads. */
export const SessionRedirect = z
  .object({
    conversation_id: Uuid.optional().meta({ description: 'Present if the session has ended and left a conversation' }),
  })
  .meta({ id: 'SessionRedirect', description: 'The target of the link of a session' });

/** The page to which the link of a conversation leads. */
export const ConversationRedirect = z
  .object({ session_id: Uuid.optional().meta({ description: 'Present while one is live' }) })
  .meta({ id: 'ConversationRedirect', description: 'The target of the link of a conversation' });

export const InterruptedRun = z
  .object({ run_id: Uuid.describe('Run whose turn ends') })
  .meta({ id: 'InterruptedRun', description: 'The run of a conversation whose turn ends' });

/** A conversation with more runs cannot be forked. */
export const maxForkedRuns = 200;
/** A conversation has at most this many forks. */
export const maxForksOfConversation = 100;

const ConversationTitle = NonBlank.max(200).regex(/^[^\p{Cc}]*$/u, 'must be one line of text');

export const ForkConversationRequest = z
  .object({
    title: ConversationTitle.nullish().meta({
      description:
        'Title of the new conversation, at most 200 characters; default: the title of the forked conversation',
    }),
  })
  .meta({ id: 'ForkConversationRequest', description: 'The fork of a conversation' });

export const ForkedConversation = z
  .object({ forked_conversation_id: Uuid.describe('Id of the new conversation') })
  .meta({ id: 'ForkedConversation', description: 'The conversation that a fork created' });

export const RenameConversationRequest = z
  .object({ title: ConversationTitle.meta({ description: 'New title, at most 200 characters' }) })
  .meta({ id: 'RenameConversationRequest', description: 'A new title of a conversation' });

export const RenamedConversation = z
  .object({ title: z.string().describe('The title as it is stored') })
  .meta({ id: 'RenamedConversation', description: 'The title of a conversation' });
