/**
 * Stores the rows of `worker_connections`, one for each open WebSocket of a worker, and renews the leases of the executions of a
 * connection.
 */

import type { SandboxLevel, WorkerStatus } from '@runyard/contract/workers/worker-protocol';
import type { Queryable } from '../../../platform/store/database/database.ts';
import {
  boolean,
  defineStatement,
  nullable,
  type RowOf,
  text,
  timestamp,
  uuid,
} from '../../../platform/store/database/statement.ts';
import type { ExecutionTiming } from '../deps.ts';
import { sandboxPhases } from '../phases.ts';
import { fromNow } from '../time.ts';

/**
 * SQL: renews the lease of every execution that the connection holds. The arguments are SQL expressions.
 *
 * A connection of Runyard's own worker, which has an instance, proves that its sandboxes are alive, because this worker reports the end of
 * each sandbox. A public worker may have handed the task to another machine, or lost the task at a restart. So the connection of a public
 * worker renews a lease only for `startSeconds` after the claim, or for `silentSeconds` after the last call of the agent. The lease of a
 * stopping execution is never renewed.
 */
const renewLeasesOf = (
  connectionId: string,
  {
    leaseSeconds,
    startSeconds,
    silentSeconds,
  }: Readonly<Record<'leaseSeconds' | 'startSeconds' | 'silentSeconds', string>>,
): string => `
  UPDATE executions SET lease_until = CASE WHEN worker_instance IS NOT NULL THEN ${fromNow(leaseSeconds)}
    ELSE greatest(lease_until, least(${fromNow(leaseSeconds)},
      coalesce(agent_seen_at + make_interval(secs => ${silentSeconds}::float8), claimed_at + make_interval(secs => ${startSeconds}::float8)))) END
  WHERE connection_id = ${connectionId} AND is_live AND phase IN ${sandboxPhases} AND (worker_instance IS NOT NULL OR phase <> 'stopping')`;

/**
 * A sandbox that no worker takes over ends at its time limit, and its processes need at most this time to end. The lease lasts until the
 * time limit plus this time, so that an execution counts as lost only after its processes have ended.
 */
const endSeconds = 15;

/**
 * SQL: limits the leases of a lost connection's executions to the time in which the worker may connect again. If sandboxes continue without
 * their worker, the leases instead last until the sandboxes have ended. `adoptSeconds`: the time limit of such sandboxes; 0 if the
 * sandboxes end with the connection.
 */
const shortenLeasesOf = (connectionId: string, graceSeconds: string, adoptSeconds: string): string => `
  UPDATE executions SET lease_until = CASE WHEN ${adoptSeconds} > 0
    THEN clock_timestamp() + greatest(make_interval(secs => ${graceSeconds}::float8), make_interval(secs => ${adoptSeconds} + ${endSeconds}))
    ELSE least(lease_until, ${fromNow(graceSeconds)}) END
  WHERE connection_id = ${connectionId} AND is_live AND phase IN ${sandboxPhases}`;

const insertConnection = defineStatement({
  name: 'insert_worker_connection',
  text: `
    INSERT INTO worker_connections (id, service_instance_id, worker_id, team_id, key_id) VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT (id) DO NOTHING`,
  row: {},
});

/** Inserts the row of a connection. Call it before the worker has sent anything, and again if another process deleted the row too early. */
export async function insertWorkerConnection(
  db: Queryable,
  connection: { id: string; serviceInstanceId: string; workerId: string; teamId: string | null; keyId: string },
): Promise<void> {
  const { id, serviceInstanceId, workerId, teamId, keyId } = connection;
  await db.query(insertConnection, [id, serviceInstanceId, workerId, teamId, keyId]);
}

const updateConnection = defineStatement({
  name: 'update_worker_connection',
  text: `
    UPDATE worker_connections SET instance_id = $2, slots = $3, draining = $4, sandbox = $5::jsonb, adopt_seconds = $6, version = $7,
      last_seen_at = clock_timestamp()
    WHERE id = $1`,
  row: {},
});

const updateStatus = defineStatement({
  name: 'update_status_of_worker_connection',
  text: 'UPDATE worker_connections SET disk_free_bytes = $2, disk_total_bytes = $3, problem = $4 WHERE id = $1',
  row: {},
});

/** Stores the free disk space and the problem that a worker reports. */
export async function updateWorkerStatus(
  db: Queryable,
  connectionId: string,
  {
    disk,
    problem = null,
  }: { readonly disk: WorkerStatus['data']['disk']; readonly problem?: string | undefined | null },
): Promise<void> {
  await db.query(updateStatus, [connectionId, disk.free_bytes, disk.total_bytes, problem]);
}

/** Stores the data of the worker's hello in the row of its connection. */
export async function updateWorkerConnection(
  db: Queryable,
  connection: {
    id: string;
    instanceId: string;
    slots: number;
    draining: boolean;
    sandbox: SandboxLevel;
    adoptSeconds: number;
    version: string | undefined;
  },
): Promise<void> {
  const { id, instanceId, slots, draining, sandbox, adoptSeconds, version = null } = connection;
  await db.query(updateConnection, [id, instanceId, slots, draining, JSON.stringify(sandbox), adoptSeconds, version]);
}

const renew = defineStatement({
  name: 'renew_leases_of_connection',
  text: `
    WITH renewed AS (${renewLeasesOf('$1', { leaseSeconds: '$2', startSeconds: '$3', silentSeconds: '$4' })})
    UPDATE worker_connections SET last_seen_at = clock_timestamp() WHERE id = $1 RETURNING id`,
  row: { id: uuid },
});

/**
 * Renews the leases of all executions that the connection holds, because the worker sent a message or a ping. Returns false if the row was
 * deleted, because another service process counted this process as dead.
 */
export async function renewLeases(
  db: Queryable,
  connectionId: string,
  { leaseSeconds, agentStartSeconds, silentAgentSeconds }: ExecutionTiming,
): Promise<boolean> {
  return (await db.query(renew, [connectionId, leaseSeconds, agentStartSeconds, silentAgentSeconds])).length === 1;
}

/** Maximum number of gone workers in the table. The limit exists because a key of the hosted pool can connect under any number of names. */
const mostGone = 1_000;

const drop = defineStatement({
  name: 'drop_worker_connection',
  text: `
    WITH gone AS (
      DELETE FROM worker_connections WHERE id = $1 RETURNING adopt_seconds, worker_id, team_id, draining, version
    ), remembered AS (
      INSERT INTO gone_workers (worker_id, was_draining, version) SELECT worker_id, draining, version FROM gone WHERE team_id IS NULL
      ON CONFLICT (worker_id) DO UPDATE SET gone_at = now(), was_draining = excluded.was_draining, version = excluded.version
    ), forgotten AS (
      DELETE FROM gone_workers WHERE worker_id IN (
        SELECT worker_id FROM gone_workers ORDER BY gone_at DESC OFFSET ${mostGone} FOR UPDATE SKIP LOCKED)
    )
    ${shortenLeasesOf('$1', '$2', 'coalesce((SELECT adopt_seconds FROM gone), 0)')}`,
  row: {},
});

/** Deletes the row of a lost connection. The worker has a grace time to connect again before its executions are lost. */
export async function dropWorkerConnection(db: Queryable, connectionId: string, graceSeconds: number): Promise<void> {
  await db.query(drop, [connectionId, graceSeconds]);
}

const deadConnections = defineStatement({
  name: 'find_connections_of_dead_services',
  text: `
    SELECT c.id FROM worker_connections c LEFT JOIN service_instances s ON s.id = c.service_instance_id
    WHERE c.service_instance_id <> $2 AND (s.id IS NULL OR s.seen_at < clock_timestamp() - make_interval(secs => $1::float8))`,
  row: { id: uuid },
});

/**
 * Returns the connections of service processes that died. `asker` is the calling process, which counts as alive even if its own heartbeat
 * is late.
 */
export async function findConnectionsOfDeadServices(
  db: Queryable,
  asker: string,
  silentSeconds: number,
): Promise<string[]> {
  return (await db.query(deadConnections, [silentSeconds, asker])).map((row) => row.id);
}

const readGone = defineStatement({
  name: 'read_gone_workers',
  text: `
    SELECT g.worker_id AS worker_host, g.gone_at, g.was_draining, g.version FROM gone_workers g
    WHERE g.gone_at > now() - interval '7 days'
      AND NOT EXISTS (SELECT FROM worker_connections c WHERE c.worker_id = g.worker_id AND c.team_id IS NULL)
    ORDER BY g.gone_at DESC LIMIT 100`,
  row: { worker_host: text(), gone_at: timestamp, was_draining: boolean, version: nullable(text()) },
});

/** Returns the workers of the hosted pool that were connected in the last 7 days and are not any more, newest first, at most 100. */
export const readGoneWorkers = (db: Queryable): Promise<RowOf<typeof readGone>[]> => db.query(readGone);
