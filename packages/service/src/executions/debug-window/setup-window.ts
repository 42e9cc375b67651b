/**
 * The sandbox of a failed setup stays for a while, so that people can look at what failed. The run is FAILED in all that
 * happens there: a terminal state and an execution that is `idle` or `running` mean this window and nothing else. So only
 * rows of `executions` change here, under the lock of the run's row.
 */

import type { EnvironmentConfig } from '@runyard/contract/environments';
import type { Queryable, Statement } from '../../store/database/database.ts';
import { queueChannel, runChannel } from '../channels.ts';
import type { Engine } from '../engine.ts';
import type { OpenRequest } from './block.ts';

/** Where the environment does not say, or there is none. */
const defaultRetentionMinutes = 10;

const readRetention: Statement = {
  name: 'read_failure_retention',
  text: `
    SELECT env.config->'failure_session_retention_minutes' AS minutes
    FROM runs r JOIN environments env ON env.uid = r.environment_id AND env.team_id = r.team_id WHERE r.id = $1`,
};

/** How long the sandbox of a failed setup stays, in seconds; 0: it goes at once. */
export async function retentionSeconds(db: Queryable, runId: string): Promise<number> {
  const [row] = await db.query<{ minutes: EnvironmentConfig['failure_session_retention_minutes'] | null }>(
    readRetention,
    [runId],
  );
  return (row?.minutes ?? defaultRetentionMinutes) * 60;
}

const beginTurn: Statement = {
  name: 'begin_debug_turn',
  text: `
    UPDATE executions e SET phase = 'running', idle_until = NULL, finished_at = NULL, wanted_at = clock_timestamp(), debug_request = NULL,
      idle_seconds = e.idle_seconds + extract(epoch FROM clock_timestamp() - e.finished_at),
      deadline_at = clock_timestamp() + make_interval(secs => (SELECT max_instance_runtime_seconds FROM teams WHERE teams.id = e.team_id))
    WHERE e.id = $1 AND e.phase = 'idle'
    RETURNING pg_notify('${runChannel}', e.run_id::text)`,
};

/** The agent in the sandbox plays a turn; it holds a slot, and has the maximum runtime. */
export async function beginDebugTurn(tx: Queryable, executionId: string): Promise<void> {
  await tx.query(beginTurn, [executionId]);
}

const rest: Statement = {
  name: 'end_debug_turn',
  text: `
    UPDATE executions SET finished_at = clock_timestamp(), deadline_at = NULL, awaiting_until = NULL,
      phase = CASE WHEN $2::float8 > 0 THEN 'idle' ELSE 'stopping' END,
      idle_until = CASE WHEN $2::float8 > 0 THEN clock_timestamp() + make_interval(secs => $2::float8) END,
      stop_reason = CASE WHEN $2::float8 > 0 THEN NULL ELSE 'finished' END,
      stop_deadline = CASE WHEN $2::float8 > 0 THEN NULL ELSE clock_timestamp() + make_interval(secs => $3::float8) END
    WHERE id = $1 AND phase = 'running'
    RETURNING pg_notify('${runChannel}', run_id::text), pg_notify('${queueChannel}', pool)`,
};

/** The turn is over, however it went: the sandbox waits for as long as after the failure. */
export async function endDebugTurn(
  engine: Engine,
  tx: Queryable,
  target: { readonly runId: string; readonly executionId: string },
): Promise<void> {
  const seconds = await retentionSeconds(tx, target.runId);
  await tx.query(rest, [target.executionId, seconds, engine.timing.leaveSeconds]);
}

const ask: Statement = {
  name: 'block_debug_turn',
  text: `
    UPDATE executions e SET phase = 'idle', finished_at = clock_timestamp(), deadline_at = NULL, awaiting_until = NULL,
      debug_request = $2::jsonb, idle_until = clock_timestamp() + make_interval(secs => $3::float8)
    FROM runs r
    WHERE e.id = $1 AND r.id = e.run_id AND r.current_execution_id = e.id AND r.state = 'FAILED' AND e.phase = 'running'
    RETURNING pg_notify('${runChannel}', e.run_id::text), pg_notify('${queueChannel}', e.pool)`,
};

/**
 * The turn waits for a person: the sandbox rests as between turns, and goes with its question when the window ends. False:
 * this is no turn in the sandbox of a failed setup.
 */
export async function blockDebugTurn(
  tx: Queryable,
  target: { readonly runId: string; readonly executionId: string },
  request: OpenRequest,
): Promise<boolean> {
  // Where the environment leaves no time by now, who asks waits all the same.
  const seconds = (await retentionSeconds(tx, target.runId)) || defaultRetentionMinutes * 60;
  return (await tx.query(ask, [target.executionId, JSON.stringify(request), seconds])).length === 1;
}

const expire: Statement = {
  name: 'expire_debug_turn',
  text: `
    UPDATE executions e SET phase = 'stopping', stop_reason = 'ordered', finished_at = clock_timestamp(), deadline_at = NULL,
      stop_deadline = clock_timestamp() + make_interval(secs => $2::float8)
    FROM runs r
    WHERE e.id = $1 AND r.id = e.run_id AND r.state = 'FAILED' AND e.phase = 'running' AND e.deadline_at < clock_timestamp()
    RETURNING pg_notify('${runChannel}', e.run_id::text)`,
};

/** Ends the sandbox where a debug turn passed its deadline. */
export async function expireDebugTurn(engine: Engine, tx: Queryable, executionId: string): Promise<void> {
  await tx.query(expire, [executionId, engine.timing.cancelGraceSeconds]);
}
