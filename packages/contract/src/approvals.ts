/** What an agent asks a person, and what is answered. */
import { z } from 'zod';
import { ActionCategory } from './conversations.ts';
import { EventId, Timestamp } from './primitives.ts';

/** Who decides whether an agent may do what it asks for. */
export const ApprovalPolicy = z
  .enum(['ask', 'auto-approve', 'auto-deny'], {
    error: 'must be ask (the run waits, BLOCKED, for a person), auto-approve (the default) or auto-deny',
  })
  .meta({
    id: 'ApprovalPolicy',
    description:
      'auto-approve, the default: the sandbox is the limit. ask: before a command or a change of a file the run is BLOCKED until a follow-up approves or denies it. auto-deny: nothing is run or changed, only read.',
  });
export type ApprovalPolicy = z.infer<typeof ApprovalPolicy>;

/** A person's answer to a permission request. */
export const Decision = z.enum(['approve', 'deny']).meta({ id: 'Decision' });
export type Decision = z.infer<typeof Decision>;

/** `permission`: may it do this; `question`: what should it do. */
export const RequestKind = z.enum(['permission', 'question']).meta({ id: 'RequestKind' });
export type RequestKind = z.infer<typeof RequestKind>;

const asked = {
  request_id: z.string().min(1).max(200),
  kind: RequestKind,
  /** One line for a person: the command, the question. */
  title: z.string().max(4000),
  /** Answers that a question offers; others may be given. */
  options: z.array(z.string().max(1000)).max(20).optional(),
};

const action = { name: z.string().max(200), category: ActionCategory, input: z.unknown() };

/** What an agent asks, as it tells the service. */
export const AgentRequest = z.object({
  ...asked,
  action: z
    .object({
      ...action,
      /** The action of the conversation that waits for it. */
      id: EventId.optional(),
      /** SHA-256 over name and whole input: what was approved is known again in another sandbox. */
      fingerprint: z.string().max(100).optional(),
    })
    .optional(),
  /** What the harness needs to go on with it in another sandbox; its own format. */
  resume: z
    .string()
    .max(64 * 1024)
    .optional(),
});
export type AgentRequest = z.infer<typeof AgentRequest>;

/** What a run waits for: a BLOCKED one, or the sandbox of a failed setup. */
export const BlockedOn = z
  .object({
    ...asked,
    action: z.object(action).optional().meta({ description: 'What it wants to do; a long input is cut' }),
    asked_at: Timestamp,
  })
  .meta({ id: 'BlockedOn' });
export type BlockedOn = z.infer<typeof BlockedOn>;
