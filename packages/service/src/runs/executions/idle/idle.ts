/**
 * Ends the wait of idle sandboxes. Each statement changes the row of an execution only if the execution still has the expected phase. So
 * if an eviction and a follow-up are concurrent, only one of them succeeds.
 */

import type { RunSourceType } from '@runyard/contract/runs/states';
import type { Queryable } from '../../../platform/store/database/database.ts';
import {
  boolean,
  defineStatement,
  integer,
  type RowOf,
  text,
  uuid,
} from '../../../platform/store/database/statement.ts';
import type { ExecutionDeps } from '../deps.ts';
import { tellAgent } from '../notices.ts';
import { assignedPhases, slotlessPhases, stayingPhases } from '../phases.ts';
import { fromNow } from '../time.ts';

/** SQL: asks the agent to exit within `stopSeconds` seconds. The state of the run does not change. */
const leaving = (stopSeconds: string) => `
  UPDATE executions SET phase = 'stopping', stop_reason = 'finished', idle_until = NULL, deadline_at = NULL,
    stop_deadline = ${fromNow(stopSeconds)}`;

const expire = defineStatement({
  name: 'expire_idle',
  text: `
    ${leaving('$1')}
    WHERE id IN (SELECT id FROM executions WHERE is_live AND phase = 'idle' AND idle_until < clock_timestamp() LIMIT 200)
      AND phase = 'idle' AND idle_until < clock_timestamp()
    RETURNING ${tellAgent('run_id')}`,
  row: {},
});

/** Finds executions whose agent has waited for the whole idle time. */
export const overIdle = defineStatement({
  name: 'find_over_idle',
  text: `SELECT FROM executions WHERE is_live AND phase = 'idle' AND idle_until < clock_timestamp() LIMIT 1`,
  row: {},
});

/** Ends the wait of every agent whose idle time has passed. */
export async function leaveIdle(deps: ExecutionDeps): Promise<void> {
  await deps.db.query(expire, [deps.timing.leaveSeconds]);
}

const endWaitOfRun = defineStatement({
  name: 'end_wait_of_run',
  text: `
    ${leaving('$2')}
    WHERE run_id = $1 AND phase = 'idle'
    RETURNING ${tellAgent('run_id')}`,
  row: {},
});

/** Ends the wait of the run's agent, if the agent waits for a message. */
export async function endWait(db: Queryable, runId: string, leaveSeconds: number): Promise<void> {
  await db.query(endWaitOfRun, [runId, leaveSeconds]);
}

/** Sources of runs that no person requested. Runs of a service account count as runs of automation too, whatever their source is. */
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
 * Sorts the waiting sandboxes of each team, and takes each next sandbox from the team that has the most sandboxes. The statement itself
 * counts how many sandboxes are too many. So two concurrent evictions choose the same sandboxes, and the second eviction changes nothing.
 */
const evict = defineStatement({
  name: 'evict_idle',
  text: `
    WITH held AS MATERIALIZED (
      SELECT e.id, e.team_id, e.phase, e.finished_at, r.state = 'BLOCKED' OR e.debug_request IS NOT NULL AS asks,
        r.creator_kind = 'user' AND r.source NOT IN (${automated.map((source) => `'${source}'`).join(', ')}) AS is_of_person
      FROM executions e JOIN runs r ON r.id = e.run_id
      WHERE e.connection_id = $1 AND e.is_live AND e.phase IN ${stayingPhases}
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
    RETURNING id, ${tellAgent('run_id')}`,
  row: { id: uuid },
});

/**
 * Asks waiting agents of a worker's connection to exit, until the connection has at most `most` executions. Agents with a turn in progress
 * stay. Evicts
 * first from the team with the most executions. Within a team, agents whose turn has ended leave before agents with an open question,
 * agents of automation before agents of people, and older executions before newer executions. Returns the ids of the evicted executions.
 */
export async function evictIdle(deps: ExecutionDeps, connectionId: string, most: number): Promise<string[]> {
  const rows = await deps.db.query(evict, [connectionId, most, deps.timing.leaveSeconds]);
  return rows.map((row) => row.id);
}

type Resting = 'idle' | 'awaiting' | 'stopping';

const findResting = defineStatement({
  name: 'find_resting_of_connections',
  text: `
    SELECT id, run_id AS "runId", connection_id AS "connectionId", CASE WHEN phase IN ${slotlessPhases} THEN phase ELSE 'awaiting' END AS phase,
      phase = 'stopping' AND (stop_reason = 'ordered' OR stop_deadline < clock_timestamp()) AS "mustEnd",
      greatest(0, extract(epoch FROM stop_deadline - clock_timestamp()) * 1000)::int AS "graceMs"
    FROM executions
    WHERE connection_id = ANY($1::uuid[]) AND is_live AND phase IN ${assignedPhases}
      AND (phase IN ${slotlessPhases} OR awaiting_until > clock_timestamp())`,
  row: {
    id: uuid,
    runId: uuid,
    connectionId: uuid,
    phase: text<Resting>(),
    /** True if the worker must end the sandbox, because its end was ordered or the agent did not exit in time. */
    mustEnd: boolean,
    /** Time until the agent must have exited; 0 if the agent has not been asked to exit. */
    graceMs: integer,
  },
});

export type RestingExecution = RowOf<typeof findResting>;

/**
 * Returns, for these connections, the executions whose agents wait for a follow-up (`idle`), wait for other runs (`awaiting`) or are about
 * to exit (`stopping`).
 */
export async function restingExecutions(
  db: Queryable,
  connectionIds: readonly string[],
): Promise<ReadonlyMap<string, RestingExecution>> {
  const rows = await db.query(findResting, [connectionIds]);
  return new Map(rows.map((row) => [row.id, row]));
}

/**
 * SQL condition: a person interrupted the last turn of the run `r`, and the agent of the current execution `e` waits in the sandbox for a
 * message. The condition also reads the timeline, because the turn may have ended by itself before the interrupt arrived.
 */
export const waitsAfterInterrupt = (r: string, e: string): string => `
  ${r}.state = 'SUCCEEDED' AND ${e}.phase = 'idle' AND ${e}.interrupted_turn = ${e}.finished_turns
  AND (SELECT v.payload->>'interrupted' = 'true' FROM run_events v
    WHERE v.run_id = ${r}.id AND v.event_type = 'oz_run_done' ORDER BY v.seq DESC LIMIT 1)`;

const findWaiting = defineStatement({
  name: 'find_wait_after_interrupt',
  text: `
    SELECT FROM runs r JOIN executions e ON e.id = r.current_execution_id
    WHERE r.id = $1 AND ${waitsAfterInterrupt('r', 'e')}`,
  row: {},
});

/**
 * Ends the sandbox of a run whose last turn was interrupted, if the run's agent waits there for a message. The state of the run stays. The
 * transaction has locked the run's row. Returns false if no agent waits after an interrupt.
 */
export async function endInterruptedWait(tx: Queryable, runId: string, leaveSeconds: number): Promise<boolean> {
  if ((await tx.query(findWaiting, [runId])).length === 0) return false;
  await endWait(tx, runId, leaveSeconds);
  return true;
}
