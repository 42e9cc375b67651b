/** Builds the statements that change the state of a run. */

import { isSettled, isTerminal } from '@runyard/contract/runs/run-states';
import type { RunState } from '@runyard/contract/runs/states';
import type { TimelineEventType } from '@runyard/contract/runs/timeline';
import type { ErrorCode, ErrorDetail } from '@runyard/contract/wire/errors';
import { count, observe } from '../../../platform/metrics/record.ts';
import { afterCommit, type Queryable } from '../../../platform/store/database/database.ts';
import { defineStatement } from '../../../platform/store/database/statement.ts';
import {
  notifiedColumns,
  notifyOfFailure,
  notifyOfQuestion,
  notifyOfReview,
  resolveNotifications,
} from '../../inbox/write.ts';
import { enqueueDeliveries, enqueuedColumns, eventOfState, tellSubscribers } from '../../subscriptions/enqueue.ts';
import { tellAgent, tellQueue, tellReaders } from '../notices.ts';
import { workingPhases } from '../phases.ts';
import { isPlanOf } from '../plan-mode.ts';
import { planRetry } from '../retries/retries.ts';
import { noticeEnded } from '../tracing/notice.ts';

/**
 * SQL: the change must be sent to the agent of the execution or to its worker. Changes to `claimed` and `running` need not be sent, because
 * the agent or the worker caused them. An agent that finishes gets the order to leave in the answer to its report.
 */
const hasOrder = `execution.phase NOT IN ${workingPhases} AND execution.stop_reason IS DISTINCT FROM 'finished'`;

/** A state change, as one compare-and-set statement. */
interface TransitionDefinition {
  /** Part of the name of the prepared statement. */
  readonly name: string;
  /** States in which the change is allowed. */
  readonly from: readonly RunState[];
  readonly to: RunState;
  /** Timeline event of the change; null: the change adds no event. */
  readonly event: TimelineEventType | null;
  /** SQL assignments to columns of `executions`. They may read `args`, the jsonb parameter, and `moved`, the run's row after the change. */
  readonly execution: string;
  /** Further SQL assignments to columns of `runs`. */
  readonly run?: string;
  /** SQL of the open request to a person, for a change to BLOCKED. Every other change clears the open request. */
  readonly request?: string;
  /** SQL of further common table expressions, `, name AS (…)`, which may read `moved`. */
  readonly further?: string;
  /** True if the change queues an execution, so that dispatchers are notified. */
  readonly wakesQueue?: true;
  /**
   * Further SQL condition. It may read only columns of `runs`, because after a concurrent update PostgreSQL checks the condition again only
   * with the new row of `runs`.
   */
  readonly guard?: string;
}

/** Columns of the changed run that the other parts of the statement read. */
const movedColumns = [...new Set([...enqueuedColumns, ...notifiedColumns, 'mode'])].map((column) => `runs.${column}`);

/** Returns the part of a state change that asks people, or resolves what was asked, and that plans the retry of a failed run. */
function inboxPart({ from, to }: Pick<TransitionDefinition, 'from' | 'to'>): string {
  const resolved = from.some((state) => state === 'BLOCKED' || isTerminal(state)) ? resolveNotifications('moved') : '';
  if (to === 'BLOCKED') return resolved + notifyOfQuestion('moved');
  if (to === 'FAILED' || to === 'ERROR') return resolved + planRetry('moved') + notifyOfFailure('unrepeated');
  return to === 'SUCCEEDED' ? resolved + notifyOfReview('moved', isPlanOf('$2')) : resolved;
}

/** The reason for a state, shown as `status_message`. */
export interface Status {
  readonly message: string;
  readonly code?: ErrorCode;
  readonly retryable?: boolean;
  /** Further members that belong to the error code, as described in the error catalogue. */
  readonly detail?: ErrorDetail;
}

interface TransitionInput {
  readonly runId: string;
  /** Must be the run's current execution; otherwise the change does nothing. */
  readonly executionId: string;
  readonly status?: Status;
  /** Payload of the timeline event. */
  readonly payload?: Record<string, unknown>;
  /** Values for the SQL of the definition, which reads them as `args->>'name'`. */
  readonly args?: Record<string, unknown>;
}

/** Tries to change the run. Returns true if this call changed the run, false if the state of the run did not allow the change. */
export type Transition = (db: Queryable, input: TransitionInput) => Promise<boolean>;

/**
 * Builds the statement of a state change. The one statement changes the run, if its state and its current execution are still the expected
 * ones, and changes the execution. It also adds the timeline event, enqueues deliveries and notifies listeners. The row lock on `runs`
 * serialises all changes of a run.
 */
export function defineTransition(definition: TransitionDefinition): Transition {
  const states = definition.from.map((state) => `'${state}'`).join(', ');
  // A change that may leave the state as it is enqueues no event for subscribers.
  const subscriberEvent = definition.from.includes(definition.to) ? null : eventOfState(definition.to);
  const statement = defineStatement({
    name: `transition_${definition.name}`,
    text: `
      WITH input AS (SELECT $7::jsonb AS args),
      moved AS (
        UPDATE runs SET
          state = '${definition.to}',
          status_message = $4, error_code = $5, retryable = $6, error_detail = $8::jsonb, open_request = ${definition.request ?? 'NULL'},
          updated_at = clock_timestamp(),
          ended_at = ${isTerminal(definition.to) ? 'clock_timestamp()' : 'NULL'},
          event_seq = runs.event_seq + 1
          ${definition.run ? `, ${definition.run}` : ''}
        FROM input
        WHERE runs.id = $1 AND runs.current_execution_id = $2 AND runs.state IN (${states})
          ${definition.guard ? `AND ${definition.guard}` : ''}
        RETURNING ${movedColumns.join(', ')}
      ), execution AS (
        UPDATE executions SET ${definition.execution}
        FROM moved, input
        WHERE executions.id = $2
        RETURNING executions.number, executions.pool, executions.wanted_at, executions.phase, executions.stop_reason
      ), event AS (
        INSERT INTO run_events (run_id, seq, event_type, state, execution_number, payload)
        SELECT moved.id, moved.event_seq, ${definition.event ? `'${definition.event}'` : 'NULL'}, '${definition.to}', execution.number, $3::jsonb
        FROM moved, execution
      )${definition.further ?? ''}${inboxPart(definition)}${subscriberEvent ? `, delivery AS (${enqueueDeliveries(subscriberEvent, definition.to, 'moved')})` : ''}
      SELECT extract(epoch FROM clock_timestamp() - execution.wanted_at)::float8 AS seconds,
        (extract(epoch FROM execution.wanted_at) * 1000)::float8 AS wanted_ms,
        ${[
          tellReaders('moved.id'),
          tellAgent(`CASE WHEN ${hasOrder} THEN moved.id END`),
          ...(definition.wakesQueue ? [tellQueue('execution.pool')] : []),
          ...(subscriberEvent ? [tellSubscribers('delivery')] : []),
        ].join(', ')}
      FROM moved, execution`,
    row: {},
  });
  return async (db, input) => {
    const rows = await db.query<Made>(statement, [
      input.runId,
      input.executionId,
      input.payload ? JSON.stringify(input.payload) : null,
      input.status?.message ?? null,
      input.status?.code ?? null,
      input.status?.retryable ?? null,
      JSON.stringify(input.args ?? {}),
      input.status?.detail ? JSON.stringify(input.status.detail) : null,
    ]);
    const [made] = rows;
    if (made) afterCommit(db, () => measure(definition, input, made));
    return rows.length === 1;
  };
}

/** Counts runs that were queued by statements that `defineTransition` did not build: new runs, retries and continuations. */
export function countQueued(db: Queryable, runs: number): void {
  if (runs > 0) afterCommit(db, () => count('runyard_run_transitions_total', { state: 'QUEUED' }, runs));
}

/**
 * The times that a completed change returns. `wanted_ms`: the time at which the work of the execution was requested. `seconds`: the
 * seconds since then.
 */
interface Made {
  readonly seconds: number;
  readonly wanted_ms: number;
}

/** Counts a change, and traces the end of a turn. */
function measure(
  { from, to }: TransitionDefinition,
  input: TransitionInput,
  { seconds, wanted_ms: wantedMs }: Made,
): void {
  const { runId, executionId } = input;
  const code = input.status?.code;
  count('runyard_run_transitions_total', { state: to });
  if (to === 'INPROGRESS' && from.includes('CLAIMED')) observe('runyard_run_start_seconds', {}, seconds);
  if (!isSettled(to)) return;
  observe('runyard_run_duration_seconds', { state: to }, seconds);
  noticeEnded({ runId, executionId, state: to, code, wantedMs, endMs: wantedMs + seconds * 1_000 });
  if (to === 'FAILED' || to === 'ERROR') count('runyard_run_failures_total', { state: to, code: code ?? 'other' });
}
