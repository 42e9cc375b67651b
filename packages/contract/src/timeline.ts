import { z } from 'zod';
import { Timestamp } from './primitives.ts';

/** Kinds of timeline events; the last five are ours. */
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
    'followup_received',
    'execution_retried',
    'output_limit_reached',
  ])
  .meta({ id: 'TimelineEventType' });
export type TimelineEventType = z.infer<typeof TimelineEventType>;

export const TimelineEvent = z
  .object({
    event_uuid: z.string(),
    run_id: z.string(),
    event_type: TimelineEventType,
    occurred_at: Timestamp,
    execution_id: z.int().optional().meta({ description: 'Number of the execution in the run: 1, 2, …' }),
    payload: z.record(z.string(), z.unknown()).optional(),
  })
  .meta({ id: 'TimelineEvent' });
export type TimelineEvent = z.infer<typeof TimelineEvent>;

export const GetRunTimelineResponse = z
  .object({
    events: z.array(TimelineEvent),
  })
  .meta({ id: 'GetRunTimelineResponse' });
