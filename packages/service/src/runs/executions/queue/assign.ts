import { createHash, randomBytes, randomUUIDv7 } from 'node:crypto';
import type { EnvironmentNetwork } from '@runyard/contract/egress/network';
import type { EnvironmentConfig, EnvironmentLimits } from '@runyard/contract/environments/environments';
import { type ImageService, imageServicesOf } from '@runyard/contract/environments/services';
import type { AmbientAgentConfig } from '@runyard/contract/runs/config';
import { count, observe } from '../../../platform/metrics/record.ts';
import {
  defineStatement,
  float,
  integer,
  json,
  nullable,
  text,
  timestamp,
  uuid,
} from '../../../platform/store/database/statement.ts';
import { configOfRun } from '../../../team/environments/config-of-run.ts';
import type { ExecutionDeps } from '../deps.ts';
import { tellReaders } from '../notices.ts';
import { slotPhases } from '../transitions/transition.ts';
import { asksAboutHosts, hasKey, holdsSlot, leastDepthSql, servesPool, startsImages, takesRuns } from './may-take.ts';
import { poolLabel } from './measure.ts';

/** Describes the connection of a worker that has a free slot. */
export interface FreeSlot {
  readonly connectionId: string;
  readonly workerId: string;
  readonly workerInstance: string | null;
  /** Name of the pool: '' for the hosted pool, else the worker's name. */
  readonly pool: string;
  /** The team whose runs the worker serves; null: all teams. */
  readonly teamId: string | null;
  /** Whether the worker can run container images; absent: it cannot. */
  readonly runsImages?: boolean;
  /** Whether the worker knows approval rules about hosts; absent: it does not. */
  readonly holdsHosts?: boolean;
  /** Whether the worker can run services from container images; absent: it cannot. */
  readonly runsServiceImages?: boolean;
  /** Least depth of a run that the worker may get now, from `leastDepth`; absent: the worker may get any run. */
  readonly leastDepth?: number;
}

type EnvironmentSystem = NonNullable<EnvironmentConfig['system']>;

/** An assigned execution, with everything that its worker needs. */
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
  /** Limits of the run's environment; null if the environment sets no limits. */
  readonly limits: EnvironmentLimits | null;
  /** The system of the run's environment; null: the environment names none. */
  readonly system: EnvironmentSystem | null;
  /** The services of the run's environment that start from container images. */
  readonly services: readonly ImageService[];
  /** Hosts that the run's environment allows; null: the environment has no list of hosts. */
  readonly network: EnvironmentNetwork | null;
  /** Container image of the run's environment; null: no image. */
  readonly image: string | null;
  readonly createdAt: string;
  readonly updatedAt: string;
  /** The raw run token. Only its hash is stored. */
  readonly runToken: string;
}

/** Number of seconds for which a retry goes only to another worker than the previous try, if another one is connected. */
const otherWorkerSeconds = 10;

/**
 * SQL: this worker did not have the previous try of the execution `e`, or no other worker takes the execution soon. So a worker that fails
 * all runs for a reason of its own does not use up their tries.
 */
const isForThisWorker = (e: string): string => `
  ${e}.available_at < clock_timestamp() - interval '${otherWorkerSeconds} seconds'
  OR NOT EXISTS (SELECT FROM executions p WHERE p.run_id = ${e}.run_id AND p.number = ${e}.number - 1
    AND coalesce(p.worker_instance::text, p.connection_id::text) = coalesce($7::text, $5::uuid::text) OFFSET 0)
  OR NOT EXISTS (SELECT FROM worker_connections c WHERE c.id <> $5::uuid AND ${servesPool('c', `${e}.pool`, `${e}.team_id`)} AND ${takesRuns('c')} OFFSET 0)`;

/**
 * SQL: the worker's connection may get the execution `e` now. The execution is queued in the pool, the worker can run its image and
 * hold the hosts of its approval rules, the worker can run the services of its environment, and a run of this depth may start on the
 * worker. The pause before a retry is over, and every older execution of the run has ended. Without `OFFSET 0`, the planner would evaluate the last condition for all queued executions at once.
 */
const mayGo = (e: string): string => `
  ${e}.phase = 'queued' AND ${e}.pool = $1 AND ${e}.available_at <= clock_timestamp() AND NOT ${e}.waits_for_place AND ($9::boolean OR ${e}.image IS NULL)
  AND ${e}.depth >= $10::int AND (${e}.attempt = 0 OR ${isForThisWorker(e)})
  AND ($11::boolean OR NOT EXISTS (SELECT FROM runs a WHERE a.id = ${e}.run_id AND ${asksAboutHosts('a')} OFFSET 0))
  AND ($12::boolean OR NOT EXISTS (SELECT FROM runs a WHERE a.id = ${e}.run_id AND ${startsImages('a')} OFFSET 0))
  AND NOT EXISTS (SELECT FROM executions o WHERE o.run_id = ${e}.run_id AND o.number < ${e}.number AND o.phase <> 'ended' OFFSET 0)`;

/** SQL: the team may start a sandbox for a run of this depth, in addition to the team's sandboxes that work or wait for other runs. */
const isDeepEnough = (e: string, teamId: string): string => `
  ${e}.depth >= (SELECT ${leastDepthSql('live.count', 'own.max_concurrent_executions')} FROM teams own,
    LATERAL (SELECT count(*) AS count FROM executions b WHERE b.team_id = own.id AND b.phase IN ${slotPhases}) live WHERE own.id = ${teamId})`;

/**
 * Changes the next execution of the pool from QUEUED to PENDING, in one statement. Teams with queued runs take turns (`served_at`).
 * The statement compares and sets `served_count`: if another process has assigned a run of the team since the team's slots were counted,
 * the statement changes nothing. So a team's limit holds with any number of processes. The statement locks rows in the order teams, runs,
 * executions, as all statements do. It assigns child runs first, because their ancestors may wait for them. A connection to a pool of a
 * team gets no execution if its key may not connect to the pool now. A retry waits until every older execution of the run has ended, so
 * two executions of a run never work at the same time. The cost does not grow with the queue (`bench/assign.md`). The statement reads one
 * team after another until a team has a free slot, and queued executions in the order of the index `executions_queue`. It locks the run
 * in a subquery, because with a join the planner would read and sort the whole queue. An index on `served_at` would cost a write at each
 * assignment and is not needed.
 */
const assignStatement = defineStatement({
  name: 'transition_assign',
  text: `
    WITH team AS MATERIALIZED (
      SELECT t.id, t.served_count FROM (SELECT * FROM teams WHERE $2::uuid IS NULL OR id = $2 ORDER BY served_at, id OFFSET 0) t
      WHERE ($2::uuid IS NULL OR EXISTS (SELECT FROM worker_connections c WHERE c.id = $5 AND ${hasKey('c')})) AND (SELECT true FROM executions e WHERE e.team_id = t.id AND ${mayGo('e')} LIMIT 1)
        AND (SELECT count(*) FROM executions b WHERE b.team_id = t.id AND ${holdsSlot('b')}) < t.max_concurrent_executions
        AND (SELECT true FROM executions e WHERE e.team_id = t.id AND ${mayGo('e')} AND ${isDeepEnough('e', 't.id')} LIMIT 1)
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
        WHERE e.team_id = served.id AND ${mayGo('e')} AND ${isDeepEnough('e', 'served.id')}
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
      RETURNING executions.number, executions.image, executions.wanted_at
    ), event AS (
      INSERT INTO run_events (run_id, seq, state, execution_number)
      SELECT moved.id, moved.event_seq, 'PENDING', execution.number FROM moved, execution
    )
    SELECT moved.id, moved.execution_id, moved.conversation_id, moved.team_number, moved.title, moved.prompt, moved.model_id, moved.config,
      (SELECT ${configOfRun('e', 'moved')}->'limits' FROM environments e WHERE e.uid = moved.environment_id) AS limits,
      (SELECT ${configOfRun('e', 'moved')}->>'system' FROM environments e WHERE e.uid = moved.environment_id) AS system,
      (SELECT ${configOfRun('e', 'moved')}->'services' FROM environments e WHERE e.uid = moved.environment_id) AS services,
      (SELECT ${configOfRun('e', 'moved')}->'network' FROM environments e WHERE e.uid = moved.environment_id) AS network, (SELECT image FROM execution) AS image, moved.created_at, moved.updated_at,
      (SELECT extract(epoch FROM clock_timestamp() - wanted_at)::float8 FROM execution) AS waited_seconds, ${tellReaders('moved.id')}
    FROM team LEFT JOIN moved ON true`,
  // If `id` is null, a team has queued executions, but another process was faster to assign one. The other columns are null only in this
  // case.
  row: {
    id: nullable(uuid),
    execution_id: uuid,
    conversation_id: uuid,
    team_number: integer,
    title: text(),
    prompt: text(),
    model_id: text(),
    config: json<AmbientAgentConfig>(),
    limits: nullable(json<EnvironmentLimits>()),
    system: nullable(text<EnvironmentSystem>()),
    services: nullable(json<unknown>()),
    network: nullable(json<EnvironmentNetwork>()),
    image: nullable(text()),
    created_at: timestamp,
    updated_at: timestamp,
    waited_seconds: float,
  },
});

/** Finds a queued execution whose pause before a retry is over. */
export const queuedExecutions = defineStatement({
  name: 'find_queued_execution',
  text: `SELECT FROM executions WHERE phase = 'queued' AND available_at <= clock_timestamp() AND NOT waits_for_place LIMIT 1`,
  row: {},
});

/** Returns the SHA-256 of a run token, as `executions.token_hash` stores it. */
export function hashRunToken(token: string): Buffer {
  return createHash('sha256').update(token).digest();
}

/**
 * Assigns the next queued execution to `slot`. `nothing`: no execution is queued for it. `contended`: another assigner was faster; try
 * again.
 */
export async function assignNext(deps: ExecutionDeps, slot: FreeSlot): Promise<Assignment | 'nothing' | 'contended'> {
  const runToken = `ryr_${randomBytes(32).toString('base64url')}`;
  const assignmentId = randomUUIDv7();
  const [row] = await deps.db.query(assignStatement, [
    slot.pool,
    slot.teamId,
    assignmentId,
    hashRunToken(runToken),
    slot.connectionId,
    slot.workerId,
    slot.workerInstance,
    deps.timing.claimTimeoutSeconds,
    slot.runsImages === true,
    slot.leastDepth ?? 0,
    slot.holdsHosts === true,
    slot.runsServiceImages === true,
  ]);
  if (!row) return 'nothing';
  if (row.id === null) return 'contended';
  count('runyard_run_transitions_total', { state: 'PENDING' });
  observe('runyard_run_queue_seconds', { pool: poolLabel(slot.pool) }, row.waited_seconds);
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
    limits: row.limits,
    system: row.system,
    services: imageServicesOf({ services: row.services ?? undefined }),
    network: row.network,
    image: row.image,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    runToken,
  };
}
