import { isTerminal } from '@runyard/contract/runs/run-states';
import type { RunState } from '@runyard/contract/runs/states';
import type { RunEventType } from '@runyard/contract/team/event-subscriptions';

/** The channel of notices about new deliveries. */
export const deliveryChannel = 'runyard_deliveries';

/** Returns the event that subscribers get when a run enters `state`; null if they get none. */
export function eventOfState(state: RunState): RunEventType | null {
  if (isTerminal(state)) return 'run.ended';
  if (state === 'BLOCKED') return 'run.blocked';
  return state === 'INPROGRESS' ? 'run.started' : null;
}

/** Columns of `runs` that `enqueueDeliveries` reads. */
export const enqueuedColumns = [
  'id',
  'team_id',
  'event_seq',
  'conversation_id',
  'parent_run_id',
  'source',
  'name',
  'metadata',
] as const;

/**
 * Returns the SQL of a common table expression that inserts one delivery for each subscription to the event. The expression becomes part of
 * the statement that changes the runs, so a change and its deliveries are atomic. `relation` names a relation of the changed runs with
 * `enqueuedColumns`.
 */
export function enqueueDeliveries(event: RunEventType, state: RunState, relation: string): string {
  return `
    INSERT INTO event_deliveries (subscription_id, event, data)
    SELECT s.id, '${event}', jsonb_strip_nulls(jsonb_build_object('run_id', r.id, 'state', '${state}', 'seq', r.event_seq,
      'conversation_id', r.conversation_id, 'parent_run_id', r.parent_run_id))
    FROM ${relation} r
    JOIN event_subscriptions s ON s.team_id = r.team_id AND s.enabled AND '${event}' = ANY (s.events)
      AND (s.filter_source IS NULL OR s.filter_source = r.source)
      AND (s.filter_name IS NULL OR s.filter_name = r.name)
      AND r.metadata @> s.filter_metadata
    RETURNING subscription_id`;
}

/** SQL: the result column that notifies the deliverers if the common table expression `delivery` of `enqueueDeliveries` has a row. */
export const tellSubscribers = (delivery: string): string =>
  `(SELECT '' FROM ${delivery} LIMIT 1) AS ${deliveryChannel}`;
