/** Requests of an agent to a person, and the answers. */
import { z } from 'zod';
import { maxResumeLength } from '../limits.ts';
import { approvalPolicies } from '../wire/choices.ts';
import { EventId, Timestamp } from '../wire/primitives.ts';
import { HeldBy } from './approval-rules.ts';
import { askedInputFault } from './asked-input.ts';
import { ActionCategory } from './conversations.ts';

/**
 * The policy for permission requests of the agent: a person decides about each request, or all requests are approved, or all are denied.
 */
export const ApprovalPolicy = z
  .enum(approvalPolicies, {
    error: 'must be ask (the run waits, BLOCKED, for a person), auto-approve (the default) or auto-deny',
  })
  .meta({
    id: 'ApprovalPolicy',
    description:
      'auto-approve (default): only the sandbox limits the agent. ask: before each command and each change of a file, the run is BLOCKED until a follow-up approves or denies the action. auto-deny: the agent can read, but cannot run commands or change files.',
  });
export type ApprovalPolicy = z.infer<typeof ApprovalPolicy>;

/** A person's answer to a permission request. */
export const Decision = z
  .enum(['approve', 'deny'])
  .meta({ id: 'Decision', description: "A person's answer to a permission request" });
export type Decision = z.infer<typeof Decision>;

/** How long an approval is valid. */
export const AllowFor = z.enum(['once', 'run']).meta({
  id: 'AllowFor',
  description:
    'How long an approval is valid. `once` (default): for exactly this action. `run`: for all actions in `blocked_on.rest_of_run`, until the run ends',
});
export type AllowFor = z.infer<typeof AllowFor>;

/** `permission`: the agent asks whether it may do something. `question`: the agent asks for instructions. */
export const RequestKind = z.enum(['permission', 'question']).meta({
  id: 'RequestKind',
  description: '`permission`: the agent asks whether it may do something. `question`: the agent asks for instructions',
});
export type RequestKind = z.infer<typeof RequestKind>;

const asked = {
  request_id: z.string().min(1).max(200).describe('Id of the request; a follow-up may name it'),
  kind: RequestKind,
  /** One line for a person: the command or the question. */
  title: z.string().max(4000).describe('One line for a person: the command, the question; at most 4,000 characters'),
  /** Answers that the question suggests. Other answers are allowed too. */
  options: z
    .array(z.string().max(1000))
    .max(20)
    .optional()
    .describe('Answers that the question suggests; other answers are allowed too'),
  rest_of_run: z
    .string()
    .max(1000)
    .optional()
    .describe('Actions that an approval with `allow_for: run` allows for the rest of the run; absent: none'),
};

const action = {
  name: z.string().max(200).describe('Name of the tool'),
  category: ActionCategory,
  input: z.unknown().describe('Arguments of the tool call; all of them, because a person decides about them'),
};

/** An action about which an agent asks, in the form in which the agent reports it to the service. */
const AskedAction = z
  .object({
    ...action,
    input: action.input.superRefine((input, context) => {
      const fault = askedInputFault(input);
      if (fault !== undefined) context.addIssue(`cannot be shown whole: ${fault}`);
    }),
    /** Id of the conversation's action that waits for the answer. */
    id: EventId.optional().describe("Id of the conversation's action that waits for the answer"),
    /**
     * SHA-256 of the action's name and whole input. With this hash, the agent in another sandbox recognises an action that was approved.
     */
    fingerprint: z
      .string()
      .max(100)
      .optional()
      .describe('SHA-256 of name and whole input; another sandbox uses it to recognise an approved action'),
  })
  .meta({ id: 'AskedAction', description: 'An action that waits for an answer, as the agent reports it' });

/** An action about which an agent asks, in the form in which a person sees it. */
const BlockedAction = z.object(action).meta({ id: 'BlockedAction', description: 'An action that waits for an answer' });

/** A request of an agent to a person, in the form in which the agent reports it to the service. */
export const AgentRequest = z
  .object({
    ...asked,
    action: AskedAction.optional(),
    resume: z
      .string()
      .max(maxResumeLength)
      .optional()
      .describe('State that the harness needs to continue the action in another sandbox, in its own format'),
  })
  .meta({ id: 'AgentRequest', description: 'A request of an agent to a person' });
export type AgentRequest = z.infer<typeof AgentRequest>;

/** The open request to a person. A BLOCKED run, or the agent in the sandbox of a failed setup, waits for the answer. */
export const BlockedOn = z
  .object({
    ...asked,
    action: BlockedAction.optional().meta({ description: 'Action that the agent wants to take' }),
    asked_at: Timestamp.describe('When the agent asked, RFC 3339 in UTC'),
    enforced_by: HeldBy.optional().meta({
      description:
        'The part that holds the action, and that wrote this request. Absent: the agent asks before it acts, in its own words',
    }),
  })
  .meta({
    id: 'BlockedOn',
    description: 'The request that a BLOCKED run, or the sandbox of a failed setup, waits for',
  });
export type BlockedOn = z.infer<typeof BlockedOn>;
