import type { ErrorCode } from '@runyard/contract/errors';
import { isTerminal } from '@runyard/contract/run-states';
import type { RunState } from '@runyard/contract/states';
import type { TimelineEventType } from '@runyard/contract/timeline';
import type { Queryable, Statement } from '../../store/database/database.ts';
import { enqueueDeliveries, enqueuedColumns, eventOfState } from '../../subscriptions/enqueue.ts';
import { queueChannel, runChannel } from '../channels.ts';

/** Phases of an execution, as the table has them. */
export type Phase = 'queued' | 'assigned' | 'claimed' | 'running' | 'idle' | 'stopping' | 'ended';

/** A state change, as one compare-and-set statement. */
interface TransitionDefinition {
  /** Names the prepared statement. */
  readonly name: string;
  /** States that it may leave. */
  readonly from: readonly RunState[];
  readonly to: RunState;
  /** Timeline event that it writes; null: the timeline does not name this change. */
  readonly event: TimelineEventType | null;
  /** Assignments to columns of `executions`; `args` is its jsonb parameter, `moved` the run's row after the change. */
  readonly execution: string;
  /** Further assignments to columns of `runs`. */
  readonly run?: string;
  /** Of a change to BLOCKED: SQL of what is asked. Every other change clears it. */
  readonly request?: string;
  /** SQL of further common table expressions, which may read `moved`: `, name AS (…)`. */
  readonly further?: string;
  /** True: there is work to assign again, and whoever assigns is told. */
  readonly wakesQueue?: true;
  /** Further condition on the run's row. Only columns of `runs`: under a concurrent update PostgreSQL rechecks just that row. */
  readonly guard?: string;
}

/** Why a run is where it is, for `status_message`. */
export interface Status {
  readonly message: string;
  readonly code?: ErrorCode;
  readonly retryable?: boolean;
}

interface TransitionInput {
  readonly runId: string;
  /** Fence: must be the run's current execution. */
  readonly executionId: string;
  readonly status?: Status;
  /** Payload of the timeline event. */
  readonly payload?: Record<string, unknown>;
  /** Values for the definition's own SQL, read there as `args->>'name'`. */
  readonly args?: Record<string, unknown>;
}

/** A transition that can be tried: true where this call made it, false where the run had left the states it may leave. */
export type Transition = (db: Queryable, input: TransitionInput) => Promise<boolean>;

/**
 * Builds the statement: it changes the run (compare-and-set on state and current execution), its execution, the
 * event log, enqueues what subscribers are told, and notifies listeners, all or nothing. The row lock on `runs` orders
 * everything about one run.
 */
export function defineTransition(definition: TransitionDefinition): Transition {
  const states = definition.from.map((state) => `'${state}'`).join(', ');
  // A change that may leave the state as it is tells subscribers nothing.
  const told = definition.from.includes(definition.to) ? null : eventOfState(definition.to);
  const statement: Statement = {
    name: `transition_${definition.name}`,
    text: `
      WITH input AS (SELECT $7::jsonb AS args),
      moved AS (
        UPDATE runs SET
          state = '${definition.to}',
          status_message = $4, error_code = $5, retryable = $6, open_request = ${definition.request ?? 'NULL'},
          updated_at = clock_timestamp(),
          ended_at = ${isTerminal(definition.to) ? 'clock_timestamp()' : 'NULL'},
          event_seq = runs.event_seq + 1
          ${definition.run ? `, ${definition.run}` : ''}
        FROM input
        WHERE runs.id = $1 AND runs.current_execution_id = $2 AND runs.state IN (${states})
          ${definition.guard ? `AND ${definition.guard}` : ''}
        RETURNING ${enqueuedColumns.map((column) => `runs.${column}`).join(', ')}
      ), execution AS (
        UPDATE executions SET ${definition.execution}
        FROM moved, input
        WHERE executions.id = $2
        RETURNING executions.number, executions.pool
      ), event AS (
        INSERT INTO run_events (run_id, seq, event_type, state, execution_number, payload)
        SELECT moved.id, moved.event_seq, ${definition.event ? `'${definition.event}'` : 'NULL'}, '${definition.to}', execution.number, $3::jsonb
        FROM moved, execution
      )${definition.further ?? ''}${told ? `, delivery AS (${enqueueDeliveries(told, definition.to, 'moved')})` : ''}
      SELECT pg_notify('${runChannel}', moved.id::text) ${definition.wakesQueue ? `, pg_notify('${queueChannel}', execution.pool)` : ''}
      FROM moved, execution`,
  };
  return async (db, input) => {
    const rows = await db.query(statement, [
      input.runId,
      input.executionId,
      input.payload ? JSON.stringify(input.payload) : null,
      input.status?.message ?? null,
      input.status?.code ?? null,
      input.status?.retryable ?? null,
      JSON.stringify(input.args ?? {}),
    ]);
    return rows.length === 1;
  };
}
