/** Sandboxes that wait for a follow-up: when they stop waiting. One compare-and-set on the execution's row each, so that a follow-up at the same moment wins or loses as a whole. */

import type { Queryable, Statement } from '../../store/database/database.ts';
import { runChannel } from '../channels.ts';
import type { Engine } from '../engine.ts';

/** The agent hears `leave` and has `stop_seconds` to go. The state of the run stays as it is. */
const leaving = (stopSeconds: string) => `
  UPDATE executions SET phase = 'stopping', stop_reason = 'finished', idle_until = NULL, deadline_at = NULL,
    stop_deadline = clock_timestamp() + make_interval(secs => ${stopSeconds}::float8)`;

const expire: Statement = {
  name: 'expire_idle',
  text: `
    ${leaving('$1')}
    WHERE id IN (SELECT id FROM executions WHERE phase = 'idle' AND idle_until < clock_timestamp() LIMIT 200)
      AND phase = 'idle' AND idle_until < clock_timestamp()
    RETURNING pg_notify('${runChannel}', run_id::text)`,
};

/** Ends the wait of every agent whose time is up. */
export async function leaveIdle(engine: Engine): Promise<void> {
  await engine.db.query(expire, [engine.timing.leaveSeconds]);
}

const endWaitOfRun: Statement = {
  name: 'end_wait_of_run',
  text: `
    ${leaving('$2')}
    WHERE run_id = $1 AND phase = 'idle'
    RETURNING pg_notify('${runChannel}', run_id::text)`,
};

/** Ends the wait of a run's agent, where it waits. */
export async function endWait(db: Queryable, runId: string, leaveSeconds: number): Promise<void> {
  await db.query(endWaitOfRun, [runId, leaveSeconds]);
}

/** Counted in the statement: who evicts at the same moment chooses the same ones, and finds them gone. */
const evict: Statement = {
  name: 'evict_idle',
  text: `
    ${leaving('$3')}
    WHERE id IN (SELECT id FROM executions WHERE connection_id = $1 AND phase = 'idle' ORDER BY finished_at, id
        LIMIT greatest(0, (SELECT count(*) FROM executions WHERE connection_id = $1 AND phase IN ('assigned', 'claimed', 'running', 'idle')) - $2))
      AND phase = 'idle'
    RETURNING id, pg_notify('${runChannel}', run_id::text)`,
};

/**
 * Ends the wait of the agents that have waited longest behind a worker's connection, until it holds no more than `most`
 * executions; those that are at work stay. Gives the executions that leave.
 */
export async function evictIdle(engine: Engine, connectionId: string, most: number): Promise<string[]> {
  const rows = await engine.db.query<{ id: string }>(evict, [connectionId, most, engine.timing.leaveSeconds]);
  return rows.map((row) => row.id);
}

type Resting = 'idle' | 'awaiting' | 'stopping';

const findResting: Statement = {
  name: 'find_resting_of_connections',
  text: `
    SELECT id, CASE WHEN phase IN ('idle', 'stopping') THEN phase ELSE 'awaiting' END AS phase FROM executions
    WHERE connection_id = ANY($1::uuid[]) AND phase NOT IN ('queued', 'ended')
      AND (phase IN ('idle', 'stopping') OR awaiting_until > clock_timestamp())`,
};

/** Executions behind these connections whose agents wait for a follow-up (`idle`) or for other runs (`awaiting`), or are about to leave (`stopping`). */
export async function restingExecutions(
  db: Queryable,
  connectionIds: readonly string[],
): Promise<ReadonlyMap<string, Resting>> {
  const rows = await db.query<{ id: string; phase: Resting }>(findResting, [connectionIds]);
  return new Map(rows.map((row) => [row.id, row.phase]));
}
