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

/** Maximum length of a result in an event, in characters of its JSON. */
const maxResultLength = 64 * 1024;

/** SQL: adds the result of the run if it is not too long. Not inside `jsonb_strip_nulls`, because a result may contain null. */
const withResult = `
      || coalesce((SELECT CASE WHEN length(x.result::text) <= ${maxResultLength} THEN jsonb_build_object('result', x.result)
        WHEN x.artifact_id IS NOT NULL THEN jsonb_build_object('result_artifact_uid', x.artifact_id) END
        FROM run_results x WHERE x.run_id = r.id), '{}')`;

/**
 * Returns the SQL of a common table expression that inserts one delivery for each subscription to the event. The expression becomes part of
 * the statement that changes the runs, so a change and its deliveries are atomic. `relation` names a relation of the changed runs with
 * `enqueuedColumns`.
 */
export function enqueueDeliveries(event: RunEventType, state: RunState, relation: string): string {
  return `
    INSERT INTO event_deliveries (subscription_id, event, data)
    SELECT s.id, '${event}', jsonb_strip_nulls(jsonb_build_object('run_id', r.id, 'state', '${state}', 'seq', r.event_seq,
      'conversation_id', r.conversation_id, 'parent_run_id', r.parent_run_id))${state === 'SUCCEEDED' ? withResult : ''}
    FROM ${relation} r ${subscribersTo(event)}
    RETURNING subscription_id`;
}

/** Returns the SQL that joins the subscriptions which get the event of the run `r`. */
const subscribersTo = (event: RunEventType): string => `
    JOIN event_subscriptions s ON s.team_id = r.team_id AND s.enabled AND '${event}' = ANY (s.events)
      AND (s.filter_source IS NULL OR s.filter_source = r.source)
      AND (s.filter_name IS NULL OR s.filter_name = r.name)
      AND r.metadata @> s.filter_metadata
      AND (s.channel IS NULL OR r.parent_run_id IS NULL)`;

/**
 * Returns the SQL of a common table expression that inserts a delivery for each subscription to changes of pull requests. `relation` names a
 * relation of runs with `enqueuedColumns`, `state` and the JSON `pull_request`.
 */
export const enqueuePullRequestChanges = (relation: string): string => `
    INSERT INTO event_deliveries (subscription_id, event, data)
    SELECT s.id, 'run.pull_request_changed', jsonb_strip_nulls(jsonb_build_object('run_id', r.id, 'state', r.state,
      'conversation_id', r.conversation_id, 'parent_run_id', r.parent_run_id, 'pull_request', r.pull_request))
    FROM ${relation} r ${subscribersTo('run.pull_request_changed')}
    RETURNING subscription_id`;

/**
 * Returns the SQL of a common table expression that inserts a delivery for each target that is an enabled subscription of the team.
 * `relation` names a relation with the columns `team_id`, `target` (any text) and `data`. The deliverers find it within a second.
 */
export const enqueueNotifications = (relation: string): string => `
    INSERT INTO event_deliveries (subscription_id, event, data)
    SELECT s.id, 'notification', t.data FROM ${relation} t
    JOIN event_subscriptions s ON s.team_id = t.team_id AND s.id::text = lower(t.target) AND s.enabled
    RETURNING subscription_id`;

/** SQL: the result column that notifies the deliverers if the common table expression `delivery` of `enqueueDeliveries` has a row. */
export const tellSubscribers = (delivery: string): string =>
  `(SELECT '' FROM ${delivery} LIMIT 1) AS ${deliveryChannel}`;
