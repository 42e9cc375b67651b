import { createHash, randomBytes, randomUUIDv7 } from 'node:crypto';
import type { EnvironmentNetwork } from '@runyard/contract/egress/network';
import type { EnvironmentConfig, EnvironmentLimits } from '@runyard/contract/environments/environments';
import { type ImageService, imageServicesOf } from '@runyard/contract/environments/services';
import type { AmbientAgentConfig } from '@runyard/contract/runs/config';
import { count, observe } from '../../../platform/metrics/record.ts';
import { bytesArray } from '../../../platform/store/database/bytes-array.ts';
import {
  boolean,
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
import { slotPhases } from '../phases.ts';
import { asksAboutHosts, hasKey, holdsSlot, leastDepthSql, servesPool, startsImages, takesRuns } from './may-take.ts';
import { poolLabel } from './measure.ts';

/** A free slot of a worker's connection. */
export interface FreeSlot {
  readonly connectionId: string;
  readonly workerId: string;
  readonly workerInstance: string | null;
}

/** Free slots that can get the same runs. */
export interface FreeSlots {
  /** At most `mostAtOnce` slots, filled in this order. Slots of several connections get no retries, which avoid one worker. */
  readonly slots: readonly FreeSlot[];
  /** Name of the pool: '' for the hosted pool, else the worker's name. */
  readonly pool: string;
  /** The team whose runs the workers serve; null: all teams. If it is a team, all slots belong to one connection. */
  readonly teamId: string | null;
  /** Whether the workers can run container images; absent: they cannot. */
  readonly runsImages?: boolean;
  /** Whether the workers know approval rules about hosts; absent: they do not. */
  readonly holdsHosts?: boolean;
  /** Whether the workers can run services from container images; absent: they cannot. */
  readonly runsServiceImages?: boolean;
  /** Least depth of a run that the workers may get now, from `leastDepth`; absent: they may get any run. */
  readonly leastDepth?: number;
}

/** Maximum number of slots that one statement fills. */
export const mostAtOnce = 20;

type EnvironmentSystem = NonNullable<EnvironmentConfig['system']>;

/** An assigned execution, with everything that its worker needs. */
export interface Assignment {
  /** The connection that got the execution. */
  readonly connectionId: string;
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
    AND coalesce(p.worker_instance::text, p.connection_id::text) = coalesce(($7::text[])[1], ($5::uuid[])[1]::text) OFFSET 0)
  OR NOT EXISTS (SELECT FROM worker_connections c WHERE c.id <> ($5::uuid[])[1] AND ${servesPool('c', `${e}.pool`, `${e}.team_id`)} AND ${takesRuns('c')} OFFSET 0)`;

/**
 * SQL: the worker's connection may get the execution `e` now. The execution is queued in the pool, the worker can run its image and
 * hold the hosts of its approval rules, the worker can run the services of its environment, and a run of this depth may start on the
 * worker. The pause before a retry is over, and every older execution of the run has ended. Without `OFFSET 0`, the planner would evaluate the last condition for all queued executions at once.
 */
const mayGo = (e: string): string => `
  ${e}.is_queued AND ${e}.pool = $1 AND ${e}.available_at <= clock_timestamp() AND NOT ${e}.waits_for_place AND ($9::boolean OR ${e}.image IS NULL)
  AND ${e}.depth >= $10::int AND (${e}.attempt = 0 OR $13 AND (${isForThisWorker(e)}))
  AND ($11::boolean OR NOT EXISTS (SELECT FROM run_requests q WHERE q.run_id = ${e}.run_id AND ${asksAboutHosts('q')} OFFSET 0))
  AND ($12::boolean OR NOT EXISTS (SELECT FROM runs a JOIN run_requests q ON q.run_id = a.id WHERE a.id = ${e}.run_id AND ${startsImages('a')} OFFSET 0))
  AND NOT EXISTS (SELECT FROM executions o WHERE o.run_id = ${e}.run_id AND o.number < ${e}.number AND o.phase <> 'ended' OFFSET 0)`;

/**
 * SQL: the team may start a sandbox for a run of the depth `depth`, in addition to the team's sandboxes that work or wait for other runs, and
 * to `more` further sandboxes. `team` is a row of the common table expression `team`.
 */
const isDeepEnough = (depth: string, team: string, more: string): string =>
  `${depth} >= ${leastDepthSql(`(${team}.live + ${more})`, `${team}.max_concurrent_executions`)}`;

/** SQL: the order in which the executions of a team are assigned. */
const order = 'e.depth DESC, e.available_at, e.id';

/**
 * Changes the next executions of the pool from QUEUED to PENDING, one for each of the slots. Teams with queued runs take turns
 * (`served_at`): each gets one slot, then each that may run more gets a second slot, and so on. The statement compares and sets
 * `served_count`: if another process has assigned a run of the team since the team's slots were counted, the team gets no slot. So a team's
 * limit holds with any number of processes. The statement locks rows in the order teams, runs, executions, as all statements do, and waits
 * for no team or run, so two such statements cannot wait for each other. It assigns child runs first, because their ancestors may wait for
 * them. A connection to a pool of a team gets no execution if its key may not connect to the pool now. A retry waits until every older
 * execution of the run has ended, so two executions of a run never work at the same time. The cost does not grow with the queue
 * (`bench/assign.md`): the statement reads teams until as many as slots have queued executions, and at most as many executions of each, in
 * the order of the index `executions_queue`. It locks the run in a subquery, because with a join the planner would read and sort the
 * whole queue. An index on `served_at` would cost a write at each assignment and is not needed.
 */
const assignStatement = defineStatement({
  name: 'transition_assign',
  text: `
    WITH slot AS MATERIALIZED (
      SELECT * FROM unnest($3::uuid[], $4::bytea[], $5::uuid[], $6::text[], $7::text[]) WITH ORDINALITY
        AS s (assignment_id, token_hash, connection_id, worker_id, worker_instance, n)
    ), team AS MATERIALIZED (
      SELECT t.id, t.served_count, t.served_at, t.max_concurrent_executions,
        t.max_concurrent_executions - (SELECT count(*) FROM executions b WHERE b.team_id = t.id AND ${holdsSlot('b')}) AS free,
        (SELECT count(*) FROM executions b WHERE b.team_id = t.id AND b.is_live AND b.phase IN ${slotPhases}) AS live
      FROM (SELECT * FROM teams WHERE $2::uuid IS NULL OR id = $2 ORDER BY served_at, id OFFSET 0) t
      WHERE ($2::uuid IS NULL OR EXISTS (SELECT FROM worker_connections c WHERE c.id = ($5::uuid[])[1] AND ${hasKey('c')}))
        AND (SELECT true FROM executions e WHERE e.team_id = t.id AND ${mayGo('e')} LIMIT 1)
        AND (SELECT count(*) FROM executions b WHERE b.team_id = t.id AND ${holdsSlot('b')}) < t.max_concurrent_executions
      LIMIT cardinality($3::uuid[])
    ), turn AS MATERIALIZED (
      SELECT team.id, team.served_count, row_number() OVER (ORDER BY next.place, team.served_at, team.id) AS n
      FROM team, LATERAL (
        SELECT depth, row_number() OVER () AS place FROM (
          SELECT e.depth FROM executions e WHERE e.team_id = team.id AND ${mayGo('e')}
          ORDER BY ${order} LIMIT least(team.free, cardinality($3::uuid[]))) e
      ) next
      WHERE ${isDeepEnough('next.depth', 'team', 'next.place - 1')}
      ORDER BY n LIMIT cardinality($3::uuid[])
    ), quota AS (
      SELECT id, served_count, count(*) AS slots, max(n) AS last FROM turn GROUP BY id, served_count
    ), locked AS MATERIALIZED (
      SELECT t.id, quota.slots, quota.last FROM teams t JOIN quota ON quota.id = t.id AND quota.served_count = t.served_count
      ORDER BY t.id FOR NO KEY UPDATE OF t SKIP LOCKED
    ), served AS (
      UPDATE teams SET served_at = clock_timestamp() + locked.last * interval '1 microsecond', served_count = teams.served_count + 1
      FROM locked WHERE teams.id = locked.id
      RETURNING teams.id, teams.number, locked.slots
    ), candidate AS MATERIALIZED (
      SELECT next.run_id, next.execution_id, served.number AS team_number, row_number() OVER (ORDER BY next.place, served.id) AS n
      FROM served JOIN team ON team.id = served.id, LATERAL (
        SELECT run_id, execution_id, depth, row_number() OVER () AS place FROM (
          SELECT e.run_id, e.id AS execution_id, e.depth
          FROM executions e, LATERAL (
            SELECT FROM runs r WHERE r.id = e.run_id AND r.current_execution_id = e.id AND r.state = 'QUEUED' FOR UPDATE SKIP LOCKED) r
          WHERE e.team_id = served.id AND ${mayGo('e')}
          ORDER BY ${order} LIMIT served.slots) e
      ) next
      WHERE ${isDeepEnough('next.depth', 'team', 'next.place - 1')}
    ), moved AS (
      UPDATE runs SET state = 'PENDING', in_sandbox = true, assignment_id = slot.assignment_id, updated_at = clock_timestamp(), event_seq = runs.event_seq + 1,
        status_message = NULL, error_code = NULL, retryable = NULL, open_request = NULL
      FROM candidate JOIN slot ON slot.n = candidate.n WHERE runs.id = candidate.run_id
      RETURNING runs.*, candidate.team_number, candidate.execution_id, slot.n, slot.token_hash, slot.connection_id, slot.worker_id, slot.worker_instance
    ), execution AS (
      UPDATE executions SET phase = 'assigned', assigned_at = clock_timestamp(), token_hash = moved.token_hash,
        connection_id = moved.connection_id, worker_id = moved.worker_id, worker_instance = moved.worker_instance,
        claim_deadline = clock_timestamp() + make_interval(secs => $8::float8)
      FROM moved WHERE executions.id = moved.execution_id
      RETURNING executions.id, executions.number, executions.image, executions.wanted_at
    ), event AS (
      INSERT INTO run_events (run_id, seq, state, execution_number)
      SELECT moved.id, moved.event_seq, 'PENDING', execution.number FROM moved JOIN execution ON execution.id = moved.execution_id
    )
    SELECT status.is_contended, status.has_retries, moved.n, moved.id, moved.execution_id, moved.conversation_id, moved.team_number, moved.title, q.prompt, moved.model_id, q.config,
      (SELECT ${configOfRun('e', 'moved')}->'limits' FROM environments e WHERE e.uid = moved.environment_id) AS limits,
      (SELECT ${configOfRun('e', 'moved')}->>'system' FROM environments e WHERE e.uid = moved.environment_id) AS system,
      (SELECT ${configOfRun('e', 'moved')}->'services' FROM environments e WHERE e.uid = moved.environment_id) AS services,
      (SELECT ${configOfRun('e', 'moved')}->'network' FROM environments e WHERE e.uid = moved.environment_id) AS network,
      execution.image, moved.created_at, moved.updated_at,
      extract(epoch FROM clock_timestamp() - execution.wanted_at)::float8 AS waited_seconds, ${tellReaders('moved.id')}
    FROM (
      SELECT (SELECT count(*) FROM turn) > (SELECT count(*) FROM candidate) AS is_contended,
        NOT $13 AND EXISTS (SELECT FROM executions e WHERE e.is_queued AND e.pool = $1 AND e.attempt > 0) AS has_retries) status
      LEFT JOIN (moved JOIN execution ON execution.id = moved.execution_id JOIN run_requests q ON q.run_id = moved.id) ON true
    ORDER BY moved.n`,
  // If no execution was assigned, there is one row, whose columns are null except the first two.
  row: {
    /** True if the teams have further queued executions for the slots, but another transaction has locked or changed them. */
    is_contended: boolean,
    /** True if a retry is queued, which slots of different connections do not get. */
    has_retries: boolean,
    n: integer,
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
  text: `SELECT FROM executions WHERE is_queued AND available_at <= clock_timestamp() AND NOT waits_for_place LIMIT 1`,
  row: {},
});

/** Returns the SHA-256 of a run token, as `executions.token_hash` stores it. */
export function hashRunToken(token: string): Buffer {
  return createHash('sha256').update(token).digest();
}

interface Assigned {
  readonly assignments: readonly Assignment[];
  /** True: there are more queued executions for the slots, but another transaction has locked or changed them. Try again. */
  readonly isContended: boolean;
  /** True: a retry is queued, which slots of different connections do not get. */
  readonly hasRetries: boolean;
}

/** Assigns the next queued executions to free slots, at most one to each. */
export async function assign(deps: ExecutionDeps, free: FreeSlots): Promise<Assigned> {
  const { slots } = free;
  const tokens = slots.map(() => `ryr_${randomBytes(32).toString('base64url')}`);
  const assignmentIds = slots.map(() => randomUUIDv7());
  const rows = await deps.db.query(assignStatement, [
    free.pool,
    free.teamId,
    assignmentIds,
    bytesArray(tokens.map(hashRunToken)),
    slots.map(({ connectionId }) => connectionId),
    slots.map(({ workerId }) => workerId),
    slots.map(({ workerInstance }) => workerInstance),
    deps.timing.claimTimeoutSeconds,
    free.runsImages === true,
    free.leastDepth ?? 0,
    free.holdsHosts === true,
    free.runsServiceImages === true,
    new Set(slots.map(({ connectionId }) => connectionId)).size === 1,
  ]);
  const [status] = rows;
  const assignments = rows.flatMap((row): Assignment[] => {
    const [slot, assignmentId, runToken] = [slots[row.n - 1], assignmentIds[row.n - 1], tokens[row.n - 1]];
    if (row.id === null || !slot || assignmentId === undefined || runToken === undefined) return [];
    count('runyard_run_transitions_total', { state: 'PENDING' });
    observe('runyard_run_queue_seconds', { pool: poolLabel(free.pool) }, row.waited_seconds);
    return [
      {
        connectionId: slot.connectionId,
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
      },
    ];
  });
  return { assignments, isContended: status?.is_contended === true, hasRetries: status?.has_retries === true };
}
