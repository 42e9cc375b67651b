/** Events that an agent reports from the sandbox of a run, with one schema for each kind. `AgentEvent` is the union of these schemas. */
import { z } from 'zod';
import { maxBaseCommits } from '../limits.ts';
import { EventId, TurnNumber } from '../wire/primitives.ts';
import { AgentRequest, Decision, RequestKind } from './approvals.ts';
import { ActionCategory, ActionState, MessageRole } from './conversations.ts';
import { AnsweredBy, RunMode } from './message-origin.ts';

/** Returns the members that every event has. */
const eventOf = <T extends string>(type: T) => ({
  seq: z
    .int()
    .min(1)
    .describe('Number of the event in its execution: 1, 2, … It is sent until acknowledged and applied once'),
  occurred_at: z.string().describe("RFC 3339, by the sandbox's clock"),
  type: z.literal(type).describe('Kind of the event'),
});

const stepId = EventId.describe('Id of the step of the conversation');

export const BaseCommit = z
  .object({
    path: z.string().max(1000).describe('Path of the repository in the workspace'),
    commit: z
      .string()
      .regex(/^(?:[0-9a-f]{40}|[0-9a-f]{64})$/)
      .describe('The commit'),
  })
  .meta({ id: 'BaseCommit', description: 'The commit at which a repository of the workspace was cloned' });
export type BaseCommit = z.infer<typeof BaseCommit>;

export const AgentStartedEvent = z
  .object({
    ...eventOf('agent_started'),
    harness: z.string().describe('Harness that works on the prompt'),
    model_id: z.string().describe('Model that the harness uses'),
    base_commits: z
      .array(BaseCommit)
      .max(maxBaseCommits)
      .optional()
      .describe(
        'Commits that this execution has cloned; absent: it restored the workspace of an earlier one, or cloned nothing',
      ),
  })
  .meta({
    id: 'AgentStartedEvent',
    description: 'The harness works on the prompt: CLAIMED → INPROGRESS. The deadline counts from here',
  });

const SetupStepKind = z
  .enum(['workspace', 'attachments', 'skill', 'clone', 'setup_command', 'service', 'mcp_server', 'harness'])
  .meta({ id: 'SetupStepKind', description: 'The thing that a setup step prepares' });

const setupStep = {
  step_id: EventId.describe('Id of the setup step, the same at its start and its end'),
  kind: SetupStepKind,
  name: z.string().describe('The prepared thing: a repository, a command, a server'),
};

export const SetupStepStartedEvent = z
  .object({ ...eventOf('setup_step_started'), ...setupStep })
  .meta({ id: 'SetupStepStartedEvent', description: 'A step before the agent begins has started' });

export const SetupStepFinishedEvent = z
  .object({
    ...eventOf('setup_step_finished'),
    ...setupStep,
    duration_ms: z.number().describe('Milliseconds that the step took'),
    exit_code: z.int().optional().describe('Exit code of its command; absent: it ran none'),
    output_tail: z.string().optional().describe('End of its output, at most 8 KB'),
    error: z.string().optional().describe('Why the step failed; absent: it succeeded'),
  })
  .meta({ id: 'SetupStepFinishedEvent', description: 'A step before the agent begins has ended' });

const checkOf = {
  check_id: EventId.describe('Id of this run of the check, the same at its start and its end'),
  name: z.string().describe('Name of the check'),
  attempt: z.int().min(1).max(100).describe('Number of the round of checks in the turn: 1, 2, …'),
};

export const CheckStartedEvent = z
  .object({ ...eventOf('check_started'), ...checkOf })
  .meta({ id: 'CheckStartedEvent', description: 'A check of the run has started' });

const CheckState = z
  .enum(['passed', 'failed'])
  .meta({ id: 'CheckState', description: 'Whether a check of a run has passed' });

export const CheckFinishedEvent = z
  .object({
    ...eventOf('check_finished'),
    ...checkOf,
    state: CheckState,
    duration_ms: z.number().describe('Milliseconds that the check took'),
    exit_code: z.int().optional().describe('Exit code of its command; absent: it ran none'),
    output_tail: z.string().optional().describe('End of its output, at most 8 KB'),
    error: z.string().optional().describe('Why it failed; absent: it passed'),
    check_run_id: z.string().max(36).optional().describe('The run of the fresh sandbox; absent: the check has none'),
  })
  .meta({ id: 'CheckFinishedEvent', description: 'A check of the run has ended' });

export const FollowUpTakenEvent = z
  .object({
    ...eventOf('follow_up_taken'),
    follow_up_id: EventId.describe('Id of the follow-up in the inbox'),
  })
  .meta({
    id: 'FollowUpTakenEvent',
    description: 'The agent takes a follow-up from its inbox. It is sent before the turn of that follow-up',
  });

const CheckpointState = z.enum(['begun', 'unchanged']).meta({
  id: 'CheckpointState',
  description:
    '`begun`: the files will be archived as they are now. `unchanged`: they are as in the archive that the execution left last',
});

export const CheckpointEvent = z
  .object({
    ...eventOf('checkpoint'),
    number: z.int().min(1).max(2_147_483_647).describe('Number of the checkpoint in its execution: 1, 2, …'),
    state: CheckpointState,
    turn: TurnNumber.describe('Number of the turn in the execution: 1, 2, …'),
    done_blocks: z
      .int()
      .min(0)
      .max(1_000_000)
      .optional()
      .describe('Commands of a runbook that need not run again; absent: none'),
  })
  .meta({
    id: 'CheckpointEvent',
    description:
      'Marks the place in the conversation that the files of a checkpoint fit: all events before this one had happened. The conversation does not show it',
  });

export const TurnStartedEvent = z
  .object({
    ...eventOf('turn_started'),
    step_id: stepId,
    prompt: z.string().describe('Message of the user'),
    sent_by: AnsweredBy.optional().describe('Absent: the creator of the run'),
    mode: RunMode.optional().describe('Mode of the follow-up. The service adds it'),
  })
  .meta({ id: 'TurnStartedEvent', description: "A turn begins: a step of the conversation with the user's message" });

export const TurnFinishedEvent = z
  .object({
    ...eventOf('turn_finished'),
    step_id: stepId,
    summary: z.string().optional().describe("The agent's own summary"),
  })
  .meta({ id: 'TurnFinishedEvent', description: 'A turn has ended' });

export const TextEvent = z
  .object({
    ...eventOf('text'),
    step_id: stepId,
    message_id: EventId.describe('Id of the message to append to; the first text creates it'),
    role: MessageRole,
    text: z.string().describe('Text to append to the message'),
  })
  .meta({ id: 'TextEvent', description: 'A piece of a message' });

export const ActionEvent = z
  .object({
    ...eventOf('action'),
    step_id: stepId,
    action_id: EventId.describe('Id of the action, by which its output and its result name it'),
    category: ActionCategory,
    name: z.string().describe('Name of the tool'),
    input: z.unknown().describe('Arguments of the tool call'),
  })
  .meta({ id: 'ActionEvent', description: 'The agent calls a tool' });

export const ActionOutputEvent = z
  .object({
    ...eventOf('action_output'),
    action_id: EventId.describe('Id of the running action'),
    text: z.string().describe('Text to append to its output'),
  })
  .meta({
    id: 'ActionOutputEvent',
    description:
      'Text to append to the output of an action. The agent keeps 64 KB of an output: the head comes while the action runs; a mark of what is left out, and the tail, come at its end',
  });

export const ActionResultEvent = z
  .object({
    ...eventOf('action_result'),
    action_id: EventId.describe('Id of the action'),
    state: ActionState,
    output: z.unknown().optional().describe('Replaces the appended output; absent: the appended output stays'),
    exit_code: z
      .int()
      .optional()
      .describe('Exit code of its command; absent: the action ran no command, or the command was killed'),
    duration_ms: z.number().optional().describe('Milliseconds that the action took'),
    output_bytes: z.int().optional().describe('Bytes of the whole output; absent: nothing was cut'),
    output_artifact_uid: z
      .string()
      .max(100)
      .optional()
      .describe('UID of the FILE artifact with the whole output, up to the limit of the team; absent: there is none'),
  })
  .meta({ id: 'ActionResultEvent', description: 'An action has ended' });

export const NoticeEvent = z
  .object({
    ...eventOf('notice'),
    step_id: stepId,
    name: z.string().describe('Kind of the notice, as the harness names it'),
    data: z.unknown().describe('Content of the notice, as the harness gave it'),
  })
  .meta({ id: 'NoticeEvent', description: 'Anything else worth showing: thoughts, plans, changes of mode' });

export const BlockedEvent = z
  .object({
    ...eventOf('blocked'),
    step_id: stepId,
    request: AgentRequest,
  })
  .meta({
    id: 'BlockedEvent',
    description: 'The agent waits for a person: INPROGRESS → BLOCKED. Follow-ups that came earlier do not answer it',
  });

const RequestOutcome = z
  .enum([...Decision.options, 'answer'])
  .meta({ id: 'RequestOutcome', description: 'How a request was decided; `answer`: in words' });
const Decider = z.enum(['person', 'policy', 'agent']).meta({
  id: 'Decider',
  description:
    "The decider. `policy`: the run's approval policy, without a person; `agent`: an agent key that `approvals_from` names, or a run above",
});

export const DecidedEvent = z
  .object({
    ...eventOf('decided'),
    step_id: stepId,
    request_id: EventId.describe('Id of the request'),
    kind: RequestKind,
    title: z.string().describe('One line of the request for a person'),
    action_id: EventId.optional().describe('Action that waited for the answer'),
    decision: RequestOutcome,
    by: Decider,
    answered_by: AnsweredBy.optional(),
    follow_up_id: EventId.optional().describe('Follow-up that brought the answer'),
    message: z.string().optional().describe("The person's words, or why the policy denied it"),
  })
  .meta({ id: 'DecidedEvent', description: 'A request was decided' });

export const TranscriptEvent = z
  .object({
    ...eventOf('transcript'),
    line: z.string().describe('One line without its newline: JSON as the harness produced it'),
  })
  .meta({ id: 'TranscriptEvent', description: 'A line of the raw transcript' });

/** One event that an agent reports from its sandbox. */
export const AgentEvent = z
  .discriminatedUnion('type', [
    AgentStartedEvent,
    SetupStepStartedEvent,
    SetupStepFinishedEvent,
    CheckStartedEvent,
    CheckFinishedEvent,
    FollowUpTakenEvent,
    CheckpointEvent,
    TurnStartedEvent,
    TurnFinishedEvent,
    TextEvent,
    ActionEvent,
    ActionOutputEvent,
    ActionResultEvent,
    NoticeEvent,
    BlockedEvent,
    DecidedEvent,
    TranscriptEvent,
  ])
  .meta({ id: 'AgentEvent', description: 'One event in the sandbox of a run' });
export type AgentEvent = z.infer<typeof AgentEvent>;

/** An `AgentEvent` without the number and the time, which the reporter adds. */
export type AgentEventBody = AgentEvent extends infer E
  ? E extends AgentEvent
    ? Omit<E, 'seq' | 'occurred_at'>
    : never
  : never;

/** `POST /harness-support/events` → `{acknowledged}`: all events up to this seq are stored. */
export const AgentEventBatch = z
  .object({ events: z.array(AgentEvent).max(1000).describe('Events in the order of `seq`') })
  .meta({ id: 'AgentEventBatch', description: 'Events of one execution' });
export type AgentEventBatch = z.infer<typeof AgentEventBatch>;
export const AgentEventAck = z
  .object({ acknowledged: z.int().describe('All events up to this `seq` are stored') })
  .meta({ id: 'AgentEventAck', description: 'The position up to which events are stored' });
