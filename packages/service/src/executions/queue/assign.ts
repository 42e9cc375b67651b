import { createHash, randomBytes, randomUUIDv7 } from 'node:crypto';
import type { AmbientAgentConfig } from '@runyard/contract/config';
import type { Statement } from '../../store/database/database.ts';
import { runChannel } from '../channels.ts';
import type { Engine } from '../engine.ts';
import { holdsSlot } from './busy.ts';

/** A worker's connection that has a free slot. */
export interface FreeSlot {
  readonly connectionId: string;
  readonly workerId: string;
  readonly workerInstance: string | null;
  /** '' for the hosted pool, else the worker's name. */
  readonly pool: string;
  /** Serves only this team's runs; null: all teams'. */
  readonly teamId: string | null;
}

/** What a worker needs to know of the execution that it was handed. */
export interface Assignment {
  readonly assignmentId: string;
  readonly runId: string;
  readonly executionId: string;
  readonly conversationId: string;
  readonly teamNumber: number;
  readonly title: string;
  readonly prompt: string;
  readonly modelId: string;
  readonly config: AmbientAgentConfig;
  readonly createdAt: string;
  readonly updatedAt: string;
  /** Raw run token: only its hash is stored. */
  readonly runToken: string;
}

/**
 * SQL: the execution `e` waits in the pool, its pause is over, and every older one of its run has ended. `OFFSET 0` keeps the
 * planner from answering the last part for all that wait at once.
 */
const mayGo = (e: string): string => `
  ${e}.phase = 'queued' AND ${e}.pool = $1 AND ${e}.available_at <= clock_timestamp()
  AND NOT EXISTS (SELECT FROM executions o WHERE o.run_id = ${e}.run_id AND o.number < ${e}.number AND o.phase <> 'ended' OFFSET 0)`;

/**
 * QUEUED → PENDING for the next execution of the pool, in one statement. Teams with waiting work take turns
 * (`served_at`). `served_count` is compared-and-set: whoever read an older count of busy executions changes nothing, so a
 * team's limit holds with any number of assigners. Locks in the order teams, runs, executions, as everything does.
 * Runs below others go first: those above may wait for them, and more of those would only wait as well.
 * A retry waits until every older execution of its run has ended: never two at once.
 * What it takes does not grow with the queue (`bench/assign.md`): teams are asked in turn until one may have a place, and
 * what waits is read in the order of the index `executions_queue`. The run is locked in a subquery, because of a join the
 * planner takes all that wait, and sorts it. More indexes are not needed: one for `served_at` would be written at each assignment.
 */
const assignStatement: Statement = {
  name: 'transition_assign',
  text: `
    WITH team AS MATERIALIZED (
      SELECT t.id, t.served_count FROM (SELECT * FROM teams WHERE $2::uuid IS NULL OR id = $2 ORDER BY served_at, id OFFSET 0) t
      WHERE (SELECT true FROM executions e WHERE e.team_id = t.id AND ${mayGo('e')} LIMIT 1)
        AND (SELECT count(*) FROM executions b WHERE b.team_id = t.id AND ${holdsSlot('b')}) < t.max_concurrent_executions
      LIMIT 1
    ), served AS (
      UPDATE teams SET served_at = clock_timestamp(), served_count = teams.served_count + 1
      FROM team WHERE teams.id = team.id AND teams.served_count = team.served_count
      RETURNING teams.id, teams.number
    ), candidate AS MATERIALIZED (
      SELECT next.run_id, next.execution_id, served.number AS team_number
      FROM served, LATERAL (
        SELECT e.run_id, e.id AS execution_id
        FROM executions e, LATERAL (
          SELECT FROM runs r WHERE r.id = e.run_id AND r.current_execution_id = e.id AND r.state = 'QUEUED' FOR UPDATE SKIP LOCKED) r
        WHERE e.team_id = served.id AND ${mayGo('e')}
        ORDER BY e.depth DESC, e.available_at, e.id LIMIT 1
      ) next
    ), moved AS (
      UPDATE runs SET state = 'PENDING', assignment_id = $3, updated_at = clock_timestamp(), event_seq = runs.event_seq + 1,
        status_message = NULL, error_code = NULL, retryable = NULL, open_request = NULL
      FROM candidate WHERE runs.id = candidate.run_id
      RETURNING runs.*, candidate.team_number, candidate.execution_id
    ), execution AS (
      UPDATE executions SET phase = 'assigned', assigned_at = clock_timestamp(), token_hash = $4, connection_id = $5, worker_id = $6,
        worker_instance = $7, claim_deadline = clock_timestamp() + make_interval(secs => $8::float8)
      FROM moved WHERE executions.id = moved.execution_id
      RETURNING executions.number
    ), event AS (
      INSERT INTO run_events (run_id, seq, state, execution_number)
      SELECT moved.id, moved.event_seq, 'PENDING', execution.number FROM moved, execution
    )
    SELECT moved.id, moved.execution_id, moved.conversation_id, moved.team_number, moved.title, moved.prompt, moved.model_id, moved.config,
      moved.created_at, moved.updated_at, pg_notify('${runChannel}', moved.id::text)
    FROM team LEFT JOIN moved ON true`,
};

interface AssignedRow {
  /** Null: a team has waiting work, but another assigner was at it. */
  id: string | null;
  execution_id: string;
  conversation_id: string;
  team_number: number;
  title: string;
  prompt: string;
  model_id: string;
  config: AmbientAgentConfig;
  created_at: string;
  updated_at: string;
}

/** SHA-256, as `executions.token_hash` keeps it. */
export function hashRunToken(token: string): Buffer {
  return createHash('sha256').update(token).digest();
}

/** Hands the next waiting execution to `slot`. `nothing` waits that it may take, or others were at it (`contended`: try again). */
export async function assignNext(engine: Engine, slot: FreeSlot): Promise<Assignment | 'nothing' | 'contended'> {
  const runToken = `ryr_${randomBytes(32).toString('base64url')}`;
  const assignmentId = randomUUIDv7();
  const [row] = await engine.db.query<AssignedRow>(assignStatement, [
    slot.pool,
    slot.teamId,
    assignmentId,
    hashRunToken(runToken),
    slot.connectionId,
    slot.workerId,
    slot.workerInstance,
    engine.timing.claimTimeoutSeconds,
  ]);
  if (!row) return 'nothing';
  if (row.id === null) return 'contended';
  return {
    assignmentId,
    runId: row.id,
    executionId: row.execution_id,
    conversationId: row.conversation_id,
    teamNumber: row.team_number,
    title: row.title,
    prompt: row.prompt,
    modelId: row.model_id,
    config: row.config,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    runToken,
  };
}
