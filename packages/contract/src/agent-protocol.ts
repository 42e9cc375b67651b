/**
 * Messages between agent and service over HTTP under `/api/v1/harness-support/`, with the run token of
 * one assignment as bearer key. A token whose execution was ended or superseded gets 401: the agent stops at once.
 */
import { z } from 'zod';
import { AgentRequest, Decision, RequestKind } from './approvals.ts';
import { AmbientAgentConfig } from './config.ts';
import { ActionCategory, ActionState, MessageRole } from './conversations.ts';
import { EnvironmentConfig } from './environments.ts';
import { ErrorCode } from './errors.ts';
import { EventId, TurnNumber } from './primitives.ts';
import { RunMode } from './run-request.ts';
import { ArtifactType } from './states.ts';

/**
 * Header with the error code of an answer that the gateway made itself, because it could not connect to the provider although it tried
 * again. The gateway passes no header of this name on from a provider.
 */
export const gatewayErrorHeader = 'x-runyard-error-code';

/** A language model behind the gateway. */
export const AgentModel = z.object({
  /** The contract's model id. */
  id: z.string(),
  /** Wire protocol of the gateway for this model. */
  protocol: z.enum(['anthropic', 'openai-responses', 'google', 'openai-compatible']),
  /** The provider's own name of the model. */
  provider_model: z.string(),
  /** Path below the server root: the SDK's base URL is server root + this. The API key is the run token. */
  gateway_path: z.string(),
  vision_supported: z.boolean(),
});
export type AgentModel = z.infer<typeof AgentModel>;

/** A file that came with a prompt. */
const AgentAttachment = z.object({
  file_name: z.string(),
  mime_type: z.string(),
  size_bytes: z.int(),
  /** Path below the server root, readable with the run token. */
  path: z.string(),
});
export type AgentAttachment = z.infer<typeof AgentAttachment>;

/** `POST /harness-support/resolve-prompt` `{}` → the task of the agent. */
export const AgentTask = z.object({
  run_id: z.string(),
  execution_id: z.string(),
  execution_number: z.int(),
  conversation_id: z.string(),
  title: z.string(),
  /** Prompt of the first turn: the run's prompt and follow-ups that came before it, or only follow-ups if `conversation` is continued. */
  prompt: z.string(),
  /** Mode of the first turn; absent: `normal`. */
  mode: RunMode.optional(),
  /** Conversation of earlier executions, whose sandboxes are gone; absent: there is none. */
  conversation: z
    .discriminatedUnion('kind', [
      /** The harness's own memory, as it was PUT to `/harness-support/memory`. Path below the server root. */
      z.object({ kind: z.literal('memory'), path: z.string() }),
      /** Our record of the conversation as text. If it is long, its oldest part is cut. */
      z.object({ kind: z.literal('text'), text: z.string() }),
    ])
    .optional(),
  /**
   * Workspace and home of an earlier execution, which replace cloning and setup; absent: the execution starts from scratch.
   * `empty`: they held nothing. `missing`: they were not kept.
   */
  workspace: z
    .discriminatedUnion('kind', [
      z.object({
        kind: z.literal('archive'),
        /** Path below the server root. */
        path: z.string(),
        size_bytes: z.int(),
        /** Hash of the whole archive, in hexadecimal digits. */
        sha256: z.string(),
        execution_number: z.int(),
        turn: z.int(),
        /** The harness's own session, whose state is in the archive; absent if the harness loads none, or if there were turns since. */
        session_id: z.string().optional(),
      }),
      z.object({ kind: z.enum(['empty', 'missing']) }),
    ])
    .optional(),
  /** Largest archive of the workspace that is kept; absent or 0: none is kept. */
  max_workspace_bytes: z.int().optional(),
  /** The agent's open request when its sandbox ended, and the answer. Without decision and message, the request is unanswered. */
  decision: z
    .object({
      request: AgentRequest,
      follow_up_id: z.string(),
      decision: Decision.optional(),
      message: z.string().optional(),
    })
    .optional(),
  agent_config: AmbientAgentConfig,
  /** All files that came with this run's prompts so far. `earlier`: it came with a prompt of an earlier execution. */
  attachments: z.array(AgentAttachment.extend({ earlier: z.literal(true).optional() })),
  harness: z.object({
    type: z.string(),
    /** ACP agent to start inside the sandbox; absent for the built-in harness. */
    command: z.array(z.string()).optional(),
    /** Absent: `runbook`. */
    model: AgentModel.optional(),
    /** True: the run is a runbook only because the service has no language model. */
    no_model_configured: z.literal(true).optional(),
    reasoning_level: z.string().optional(),
  }),
  environment: z.object({ uid: z.string(), config: EnvironmentConfig }).optional(),
  /** Set if the agent may start runs: how many may be live at once. */
  child_runs: z.object({ max_live: z.int() }).optional(),
  /** The run that started this one. */
  parent_run: z.object({ run_id: z.string(), title: z.string() }).optional(),
  /** Repositories to clone, each from a path of the gateway below the server root. */
  repositories: z.array(z.object({ owner: z.string(), repo: z.string(), gateway_path: z.string() })),
});
export type AgentTask = z.infer<typeof AgentTask>;

const eventBase = {
  /** 1, 2, … in the execution. Sent until acknowledged, applied once. */
  seq: z.int().min(1),
  /** RFC 3339, the sandbox's clock. */
  occurred_at: z.string(),
};

/** One event in the sandbox. */
export const AgentEvent = z.discriminatedUnion('type', [
  /** The harness works on the prompt: CLAIMED → INPROGRESS. The deadline counts from here. */
  z.object({ ...eventBase, type: z.literal('agent_started'), harness: z.string(), model_id: z.string() }),
  z.object({
    ...eventBase,
    type: z.literal('setup_step_started'),
    step_id: EventId,
    kind: z.enum(['workspace', 'attachments', 'clone', 'setup_command', 'mcp_server', 'harness']),
    name: z.string(),
  }),
  z.object({
    ...eventBase,
    type: z.literal('setup_step_finished'),
    step_id: EventId,
    kind: z.enum(['workspace', 'attachments', 'clone', 'setup_command', 'mcp_server', 'harness']),
    name: z.string(),
    duration_ms: z.number(),
    exit_code: z.int().optional(),
    /** End of its output, at most 8 KB. */
    output_tail: z.string().optional(),
    error: z.string().optional(),
  }),
  /** The agent takes a follow-up from its inbox. Sent before the turn of that follow-up; applied once. */
  z.object({ ...eventBase, type: z.literal('follow_up_taken'), follow_up_id: EventId }),
  /** A user prompt begins: a Step of the conversation with the user's message. */
  z.object({ ...eventBase, type: z.literal('turn_started'), step_id: EventId, prompt: z.string() }),
  z.object({ ...eventBase, type: z.literal('turn_finished'), step_id: EventId, summary: z.string().optional() }),
  /** Text to append to the message `message_id`; the first one creates it. */
  z.object({
    ...eventBase,
    type: z.literal('text'),
    step_id: EventId,
    message_id: EventId,
    role: MessageRole,
    text: z.string(),
  }),
  z.object({
    ...eventBase,
    type: z.literal('action'),
    step_id: EventId,
    action_id: EventId,
    category: ActionCategory,
    name: z.string(),
    input: z.unknown(),
  }),
  /**
   * Text to append to the output of an action. The agent keeps 64 KB of an output: the head comes while the action runs; a mark of what
   * is left out, and the tail, come at its end.
   */
  z.object({ ...eventBase, type: z.literal('action_output'), action_id: EventId, text: z.string() }),
  /** `output` replaces the appended output; absent: the appended output stays. */
  z.object({
    ...eventBase,
    type: z.literal('action_result'),
    action_id: EventId,
    state: ActionState,
    output: z.unknown().optional(),
    exit_code: z.int().optional(),
    duration_ms: z.number().optional(),
    /** Bytes of the whole output, if it was cut. */
    output_bytes: z.int().optional(),
  }),
  /** Anything else worth showing: thoughts, plans, mode changes. */
  z.object({
    ...eventBase,
    type: z.literal('notice'),
    step_id: EventId,
    name: z.string(),
    data: z.unknown(),
  }),
  /** The agent waits for a person: INPROGRESS → BLOCKED. Follow-ups that came earlier do not answer it. */
  z.object({ ...eventBase, type: z.literal('blocked'), step_id: EventId, request: AgentRequest }),
  /** How a request was decided. `policy`: by the run's approval policy, without a person. */
  z.object({
    ...eventBase,
    type: z.literal('decided'),
    step_id: EventId,
    request_id: EventId,
    kind: RequestKind,
    title: z.string(),
    action_id: EventId.optional(),
    decision: z.enum([...Decision.options, 'answer']),
    by: z.enum(['person', 'policy']),
    follow_up_id: EventId.optional(),
    message: z.string().optional(),
  }),
  /** One line of the raw transcript, without its newline: JSON as the harness produced it. */
  z.object({ ...eventBase, type: z.literal('transcript'), line: z.string() }),
]);
export type AgentEvent = z.infer<typeof AgentEvent>;

/** An `AgentEvent` before the reporter numbers and dates it. */
export type AgentEventBody = AgentEvent extends infer E
  ? E extends AgentEvent
    ? Omit<E, 'seq' | 'occurred_at'>
    : never
  : never;

/** `POST /harness-support/events` → `{acknowledged}`: all events up to this seq are stored. */
export const AgentEventBatch = z.object({ events: z.array(AgentEvent).max(1000) });
export type AgentEventBatch = z.infer<typeof AgentEventBatch>;
export const AgentEventAck = z.object({ acknowledged: z.int() });

/** An item that waits for the agent. */
const InboxItem = z.discriminatedUnion('type', [
  /** The run is over: stop the turn and exit within 5 s. */
  z.object({ type: z.literal('cancel') }),
  /** No further turn comes: exit. */
  z.object({ type: z.literal('leave') }),
  /** End the turn of this number and wait. */
  z.object({ type: z.literal('interrupt'), turn: z.int() }),
  /** A follow-up: the next turn after the present one, in the order of `position`. */
  z.object({
    type: z.literal('follow_up'),
    id: z.string(),
    position: z.int(),
    message: z.string(),
    mode: RunMode.optional(),
    attachments: z.array(AgentAttachment).optional(),
    /** Id of the request that it answers. If that request is still open, the answer is not a turn of its own. */
    answers: z.string().optional(),
    decision: Decision.optional(),
    /** True: for the sandbox of a failed setup. Other follow-ups wait for a sandbox whose setup succeeds. */
    debug: z.boolean().optional(),
  }),
]);
export type InboxItem = z.infer<typeof InboxItem>;

/**
 * `GET /harness-support/inbox?wait_ms=25000&after=POSITION&interrupted=TURN`: answers at once if items wait, else
 * after `wait_ms`. `after` and `interrupted` name the items that the agent already has. Renews the lease.
 */
export const AgentInbox = z.object({ items: z.array(InboxItem) });
export type AgentInbox = z.infer<typeof AgentInbox>;

/** `POST /harness-support/finish-task` → `{next}`. Sent at the end of each turn, when all events are acknowledged; sending it twice is not an error. */
export const FinishTask = z.object({
  /** 1, 2, … in the execution; absent: 1. A turn ends once. */
  turn: TurnNumber.optional(),
  /** True: the turn ended because an `interrupt` asked for it. */
  interrupted: z.boolean().optional(),
  success: z.boolean(),
  /** Last message of the agent, or why it failed. */
  summary: z.string(),
  error: z
    .object({
      /** Absent: the agent itself failed at the task (FAILED without a code). */
      code: ErrorCode.optional(),
      /** True: the request that failed was repeated already, so the run ends now, also with a retryable code. */
      retried: z.literal(true).optional(),
      /** Phase, reason and what to do next, in one text. */
      message: z.string(),
    })
    .optional(),
});
export type FinishTask = z.infer<typeof FinishTask>;

/** `wait`: stay, the inbox brings the next follow-up. `leave`: exit. */
export const FinishTaskResponse = z.object({ next: z.enum(['wait', 'leave']) });
export type FinishTaskResponse = z.infer<typeof FinishTaskResponse>;

/** `POST /harness-support/report-shutdown` → `{}`: the agent's last call before it exits. */
export const ReportShutdown = z.object({ reason: z.string() });

/** `POST /harness-support/report-artifact` → `{artifact_uid, upload_url?}`; the bytes of a file-like artifact are PUT to `upload_url`, and only then does it exist. */
export const ReportArtifact = z.object({
  artifact_type: ArtifactType,
  data: z.record(z.string(), z.unknown()),
});
export const ReportArtifactResponse = z
  .object({
    artifact_uid: z.string(),
    upload_url: z.string().optional().meta({ description: 'Signed, for one PUT of the bytes (FILE, SCREENSHOT)' }),
  })
  .meta({ id: 'ReportArtifactResponse' });
