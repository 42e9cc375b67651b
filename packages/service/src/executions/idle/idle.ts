/** Sandboxes that wait for a follow-up: when they stop waiting. One compare-and-set on the execution's row each, so that a follow-up at the same moment wins or loses as a whole. */

import type { RunSourceType } from '@runyard/contract/states';
import type { Queryable, Statement } from '../../store/database/database.ts';
import { runChannel } from '../channels.ts';
import type { Engine } from '../engine.ts';
import { handedOutPhases, restingPhases, stayingPhases } from '../transitions/phases.ts';

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

/** Sources of runs that no person asked for. A service account stands for automation, too, whatever its source. */
const automated: readonly RunSourceType[] = [
  'SCHEDULED_AGENT',
  'WEBHOOK',
  'GITHUB_WEBHOOK',
  'GITLAB_WEBHOOK',
  'GITHUB_ACTION',
  'AUTOFIX',
  'SELF_IMPROVEMENT',
  'RUN_SCORER',
  'ORCHESTRATION',
];

/**
 * Each team's waiting sandboxes in the order in which it would lose them, and then, of all teams, that one first whose team holds most
 * without it. Counted in the statement: evictions at the same moment choose the same ones, and the second finds them gone.
 */
const evict: Statement = {
  name: 'evict_idle',
  text: `
    WITH held AS MATERIALIZED (
      SELECT e.id, e.team_id, e.phase, e.finished_at, r.state = 'BLOCKED' OR e.debug_request IS NOT NULL AS asks,
        r.creator_kind = 'user' AND r.source NOT IN (${automated.map((source) => `'${source}'`).join(', ')}) AS is_of_person
      FROM executions e JOIN runs r ON r.id = e.run_id
      WHERE e.connection_id = $1 AND e.phase IN ${stayingPhases}
    ), waiting AS (
      SELECT id, asks, is_of_person, finished_at, phase,
        count(*) OVER (PARTITION BY team_id)
          - row_number() OVER (PARTITION BY team_id ORDER BY phase <> 'idle', asks, is_of_person, finished_at, id) AS team_keeps
      FROM held
    )
    ${leaving('$3')}
    WHERE id IN (SELECT id FROM waiting WHERE phase = 'idle' ORDER BY team_keeps DESC, asks, is_of_person, finished_at, id
        LIMIT greatest(0, (SELECT count(*) FROM held) - $2))
      AND phase = 'idle'
    RETURNING id, pg_notify('${runChannel}', run_id::text)`,
};

/**
 * Ends the wait of agents behind a worker's connection, until it holds no more than `most` executions; those that are at work
 * stay. The team that holds most loses first; of its sandboxes those whose turn has ended before those that ask a person, those of automation
 * before those of people, the oldest first. Gives the executions that leave.
 */
export async function evictIdle(engine: Engine, connectionId: string, most: number): Promise<string[]> {
  const rows = await engine.db.query<{ id: string }>(evict, [connectionId, most, engine.timing.leaveSeconds]);
  return rows.map((row) => row.id);
}

type Resting = 'idle' | 'awaiting' | 'stopping';

const findResting: Statement = {
  name: 'find_resting_of_connections',
  text: `
    SELECT id, CASE WHEN phase IN ${restingPhases} THEN phase ELSE 'awaiting' END AS phase FROM executions
    WHERE connection_id = ANY($1::uuid[]) AND phase IN ${handedOutPhases}
      AND (phase IN ${restingPhases} OR awaiting_until > clock_timestamp())`,
};

/** Executions behind these connections whose agents wait for a follow-up (`idle`) or for other runs (`awaiting`), or are about to leave (`stopping`). */
export async function restingExecutions(
  db: Queryable,
  connectionIds: readonly string[],
): Promise<ReadonlyMap<string, Resting>> {
  const rows = await db.query<{ id: string; phase: Resting }>(findResting, [connectionIds]);
  return new Map(rows.map((row) => [row.id, row.phase]));
}
