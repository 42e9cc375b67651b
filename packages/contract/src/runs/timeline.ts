import { z } from 'zod';
import { Timestamp } from '../wire/primitives.ts';

/** Kinds of timeline events. The public service does not have the last eighteen kinds. */
export const TimelineEventType = z
  .enum([
    'oz_run_created',
    'oz_run_claimed',
    'worker_container_ready',
    'shared_session_started',
    'agent_started',
    'oz_run_done',
    'oz_run_blocked',
    'oz_run_cancelled',
    'oz_run_failed',
    'oz_run_errored',
    'vm_shutdown',
    'setup_step_started',
    'setup_step_finished',
    'setup_step_progress',
    'followup_received',
    'followup_edited',
    'followup_withdrawn',
    'turn_interrupted',
    'execution_retried',
    'execution_resumed',
    'output_limit_reached',
    'model_switched',
    'model_request_changed',
    'connection_denied',
    'git_push',
    'check_started',
    'check_finished',
    'run_retried',
    'run_not_retried',
    'github_answered',
  ])
  .meta({ id: 'TimelineEventType', description: 'Kinds of timeline events' });
export type TimelineEventType = z.infer<typeof TimelineEventType>;

/**
 * The isolation of a sandbox. The payload of `worker_container_ready` has these members in addition to `backend`, `spawn_ms`, `limits` and
 * `network`.
 */
export interface SandboxIsolation {
  /** Isolation features that work, such as `user`, `cgroup` and `no-network`. Absent if the worker reported no features. */
  readonly features?: readonly string[];
  /** Isolation features that the sandboxes of the worker lack, each with the reason. */
  readonly missing?: readonly { readonly feature: string; readonly reason: string }[];
}

export const TimelineEvent = z
  .object({
    event_uuid: z.string().describe('Id of the event'),
    run_id: z.string().describe('Id of the run'),
    event_type: TimelineEventType,
    occurred_at: Timestamp.describe('When it happened, RFC 3339 in UTC'),
    execution_id: z.int().optional().meta({ description: 'Number of the execution in the run: 1, 2, …' }),
    payload: z
      .record(z.string(), z.unknown())
      .optional()
      .describe(
        'Details; its members depend on `event_type`. `worker_container_ready` has `backend`, `spawn_ms`, `limits`, `network`, the `features` that hold, and `missing`: those that do not, each with its `reason`. Events that a caller caused have `by`: `type`, `uid`, `display_name`',
      ),
  })
  .meta({ id: 'TimelineEvent', description: 'Something that happened to a run' });
export type TimelineEvent = z.infer<typeof TimelineEvent>;

export const GetRunTimelineResponse = z
  .object({
    events: z.array(TimelineEvent).describe('Events, oldest first'),
  })
  .meta({ id: 'GetRunTimelineResponse', description: 'The timeline of a run' });
