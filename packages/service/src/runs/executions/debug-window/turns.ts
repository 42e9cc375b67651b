/**
 * The turns in the debug window: the time for which the sandbox of a failed setup stays, so that people can look at the failure. The
 * run stays FAILED: only its execution changes, under the lock of the run's row. A terminal state together with the phase `idle` or
 * `running` always means this window.
 */
import type { Queryable } from '../../../platform/store/database/database.ts';
import { defineStatement } from '../../../platform/store/database/statement.ts';
import { queueChannel, runChannel } from '../channels.ts';
import type { ExecutionDeps } from '../deps.ts';
import { fromNow } from '../from-now.ts';
import type { OpenRequest } from './block.ts';
import { defaultRetentionMinutes, retentionSeconds } from './retention.ts';

const beginTurn = defineStatement({
  name: 'begin_debug_turn',
  text: `
    UPDATE executions e SET phase = 'running', idle_until = NULL, finished_at = NULL, wanted_at = clock_timestamp(), debug_request = NULL,
      idle_seconds = e.idle_seconds + extract(epoch FROM clock_timestamp() - e.finished_at),
      deadline_at = ${fromNow('SELECT max_instance_runtime_seconds FROM teams WHERE teams.id = e.team_id')}
    WHERE e.id = $1 AND e.phase = 'idle'
    RETURNING pg_notify('${runChannel}', e.run_id::text)`,
  row: {},
});

/** Begins a turn in the debug window: the execution takes a slot and has the maximum runtime. */
export async function beginDebugTurn(tx: Queryable, executionId: string): Promise<void> {
  await tx.query(beginTurn, [executionId]);
}

const endTurn = defineStatement({
  name: 'end_debug_turn',
  text: `
    UPDATE executions SET finished_at = clock_timestamp(), deadline_at = NULL, awaiting_until = NULL,
      phase = CASE WHEN $2::float8 > 0 THEN 'idle' ELSE 'stopping' END,
      idle_until = CASE WHEN $2::float8 > 0 THEN ${fromNow('$2')} END,
      stop_reason = CASE WHEN $2::float8 > 0 THEN NULL ELSE 'finished' END,
      stop_deadline = CASE WHEN $2::float8 > 0 THEN NULL ELSE ${fromNow('$3')} END
    WHERE id = $1 AND phase = 'running'
    RETURNING pg_notify('${runChannel}', run_id::text), pg_notify('${queueChannel}', pool)`,
  row: {},
});

/** Ends a turn in the debug window, whatever its result: the sandbox stays for as long as after the failure. */
export async function endDebugTurn(
  deps: ExecutionDeps,
  tx: Queryable,
  target: { readonly runId: string; readonly executionId: string },
): Promise<void> {
  const seconds = await retentionSeconds(tx, target.runId);
  await tx.query(endTurn, [target.executionId, seconds, deps.timing.leaveSeconds]);
}

const blockTurn = defineStatement({
  name: 'block_debug_turn',
  text: `
    UPDATE executions e SET phase = 'idle', finished_at = clock_timestamp(), deadline_at = NULL, awaiting_until = NULL,
      debug_request = $2::jsonb, idle_until = ${fromNow('$3')}
    FROM runs r
    WHERE e.id = $1 AND r.id = e.run_id AND r.current_execution_id = e.id AND r.state = 'FAILED' AND e.phase = 'running'
    RETURNING pg_notify('${runChannel}', e.run_id::text), pg_notify('${queueChannel}', e.pool)`,
  row: {},
});

/**
 * Lets a turn in the debug window wait for a person's answer, as between turns. Sandbox and question end with the window.
 * Returns false where the execution runs no such turn.
 */
export async function blockDebugTurn(
  tx: Queryable,
  target: { readonly runId: string; readonly executionId: string },
  request: OpenRequest,
): Promise<boolean> {
  // If the retention time is now 0, use the default: a question needs time to be answered.
  const seconds = (await retentionSeconds(tx, target.runId)) || defaultRetentionMinutes * 60;
  return (await tx.query(blockTurn, [target.executionId, JSON.stringify(request), seconds])).length === 1;
}

const expire = defineStatement({
  name: 'expire_debug_turn',
  text: `
    UPDATE executions e SET phase = 'stopping', stop_reason = 'ordered', finished_at = clock_timestamp(), deadline_at = NULL,
      stop_deadline = ${fromNow('$2')}
    FROM runs r
    WHERE e.id = $1 AND r.id = e.run_id AND r.state = 'FAILED' AND e.phase = 'running' AND e.deadline_at < clock_timestamp()
    RETURNING pg_notify('${runChannel}', e.run_id::text)`,
  row: {},
});

/** Orders the end of the sandbox if its turn in the debug window has passed the deadline. */
export async function expireDebugTurn(deps: ExecutionDeps, tx: Queryable, executionId: string): Promise<void> {
  await tx.query(expire, [executionId, deps.timing.cancelGraceSeconds]);
}
