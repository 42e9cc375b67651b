import { z } from 'zod';
import { Timestamp, Uuid } from './primitives.ts';

/** What kind of work an action is. */
export const ActionCategory = z
  .enum(['command', 'files', 'search', 'integration', 'documents', 'computer', 'review', 'skill'])
  .meta({ id: 'ActionCategory' });
export type ActionCategory = z.infer<typeof ActionCategory>;

/** State of an action's result. */
export const ActionState = z.enum(['running', 'completed', 'failed', 'denied']).meta({ id: 'ActionState' });
export type ActionState = z.infer<typeof ActionState>;

/** Text of a message. */
export const TextBlock = z
  .object({
    type: z.literal('text'),
    text: z.string(),
    message_id: z.string().optional(),
  })
  .meta({ id: 'TextBlock' });

/** A tool call. */
export const ActionBlock = z
  .object({
    type: z.literal('action'),
    id: z.string(),
    category: ActionCategory,
    name: z.string(),
    input: z.unknown(),
    message_id: z.string().optional(),
  })
  .meta({ id: 'ActionBlock' });

/** What a tool call gave. Output over 64 KB is head, tail and size. */
export const ActionResultBlock = z
  .object({
    type: z.literal('action_result'),
    action_id: z.string(),
    category: ActionCategory,
    name: z.string(),
    state: ActionState,
    output: z.unknown(),
    message_id: z.string().optional(),
  })
  .meta({ id: 'ActionResultBlock' });

/** Anything else the harness told. */
export const EventBlock = z
  .object({
    type: z.literal('event'),
    name: z.string(),
    data: z.unknown(),
    message_id: z.string().optional(),
  })
  .meta({ id: 'EventBlock' });

export const ContentBlock = z
  .discriminatedUnion('type', [TextBlock, ActionBlock, ActionResultBlock, EventBlock])
  .meta({ id: 'ContentBlock' });
export type ContentBlock = z.infer<typeof ContentBlock>;

export const MessageRole = z.enum(['user', 'assistant', 'tool', 'system']).meta({ id: 'MessageRole' });
export type MessageRole = z.infer<typeof MessageRole>;

export const Message = z
  .object({
    role: MessageRole,
    content: z.array(ContentBlock),
    timestamp: Timestamp.optional(),
    message_ids: z.array(z.string()).optional(),
    request_id: z.string().optional(),
  })
  .meta({ id: 'Message' });
export type Message = z.infer<typeof Message>;

/** One user prompt and what the agent did on it; delegated work nests. */
export const Step = z
  .object({
    id: z.string(),
    description: z.string().optional(),
    summary: z.string().optional(),
    started_at: Timestamp.optional(),
    completed_at: Timestamp.optional(),
    messages: z.array(Message),
    get steps() {
      return z.array(Step);
    },
  })
  .meta({ id: 'Step' });
export type Step = z.infer<typeof Step>;

export const ConversationResponse = z
  .object({
    conversation_id: z.string(),
    steps: z.array(Step),
  })
  .meta({ id: 'ConversationResponse' });
export type ConversationResponse = z.infer<typeof ConversationResponse>;

/** Where the link of a session leads. */
export const SessionRedirect = z
  .object({
    conversation_id: Uuid.optional().meta({ description: 'Present where the session has ended and left one' }),
  })
  .meta({ id: 'SessionRedirect' });

/** Where the link of a conversation leads. */
export const ConversationRedirect = z
  .object({ session_id: Uuid.optional().meta({ description: 'Present while one is live' }) })
  .meta({ id: 'ConversationRedirect' });
