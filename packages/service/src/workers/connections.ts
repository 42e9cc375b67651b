/** Rows of `worker_connections` and the leases that hang on a connection. */
import type { SandboxLevel } from '@runyard/contract/worker-protocol';
import { handedOutPhases, heldPhases } from '../executions/transitions/phases.ts';
import type { Queryable, Statement } from '../store/database/database.ts';
import { hasKey, isInPool } from './rights.ts';

const insertConnection: Statement = {
  name: 'insert_worker_connection',
  text: 'INSERT INTO worker_connections (id, service_instance_id, worker_id, team_id, key_id) VALUES ($1, $2, $3, $4, $5) ON CONFLICT (id) DO NOTHING',
};

/** Inserts the row of a connection, before its worker said anything, or where another process dropped it too early. */
export async function insertWorkerConnection(
  db: Queryable,
  connection: { id: string; serviceInstanceId: string; workerId: string; teamId: string | null; keyId: string },
): Promise<void> {
  await db.query(insertConnection, [
    connection.id,
    connection.serviceInstanceId,
    connection.workerId,
    connection.teamId,
    connection.keyId,
  ]);
}

const updateConnection: Statement = {
  name: 'update_worker_connection',
  text: `
    UPDATE worker_connections SET instance_id = $2, slots = $3, draining = $4, sandbox = $5::jsonb, last_seen_at = clock_timestamp()
    WHERE id = $1`,
};

/** What the worker's hello told. */
export async function updateWorkerConnection(
  db: Queryable,
  connection: { id: string; instanceId: string; slots: number; draining: boolean; sandbox: SandboxLevel },
): Promise<void> {
  const { id, instanceId, slots, draining, sandbox } = connection;
  await db.query(updateConnection, [id, instanceId, slots, draining, JSON.stringify(sandbox)]);
}

const nameInstanceOf: Statement = {
  name: 'name_instance_of_executions',
  text: `
    UPDATE executions SET worker_instance = $2
    WHERE connection_id = $1 AND worker_instance IS NULL AND phase IN ${handedOutPhases}`,
};

/** What the connection was handed before its hello, which came late, is of its instance. */
export async function nameInstance(db: Queryable, connectionId: string, instanceId: string): Promise<void> {
  await db.query(nameInstanceOf, [connectionId, instanceId]);
}

const renew: Statement = {
  name: 'renew_leases_of_connection',
  text: `
    WITH renewed AS (
      UPDATE executions SET lease_until = clock_timestamp() + make_interval(secs => $2::float8)
      WHERE connection_id = $1 AND phase IN ${heldPhases})
    UPDATE worker_connections SET last_seen_at = clock_timestamp() WHERE id = $1 RETURNING id`,
};

/**
 * A sign of life on the connection keeps everything that runs behind it. False: another service process took this one for
 * dead and gave the connection up.
 */
export async function renewLeases(db: Queryable, connectionId: string, leaseSeconds: number): Promise<boolean> {
  return (await db.query(renew, [connectionId, leaseSeconds])).length === 1;
}

const drop: Statement = {
  name: 'drop_worker_connection',
  text: `
    WITH gone AS (DELETE FROM worker_connections WHERE id = $1)
    UPDATE executions SET lease_until = least(lease_until, clock_timestamp() + make_interval(secs => $2::float8))
    WHERE connection_id = $1 AND phase IN ${heldPhases}`,
};

/** The connection is gone: what runs behind it has the grace to come back with a new one. */
export async function dropWorkerConnection(db: Queryable, connectionId: string, graceSeconds: number): Promise<void> {
  await db.query(drop, [connectionId, graceSeconds]);
}

const assignedTo: Statement = {
  name: 'find_assigned_to_connection',
  text: `
    SELECT r.id AS "runId", e.id AS "executionId", r.assignment_id AS "assignmentId"
    FROM executions e JOIN runs r ON r.id = e.run_id AND r.current_execution_id = e.id
    WHERE e.connection_id = $1 AND e.phase = 'assigned' AND r.assignment_id IS NOT NULL`,
};

/** Assignments of the connection that nobody claimed yet. */
export async function findAssigned(
  db: Queryable,
  connectionId: string,
): Promise<{ runId: string; executionId: string; assignmentId: string }[]> {
  return await db.query(assignedTo, [connectionId]);
}

const adopt: Statement = {
  name: 'adopt_executions',
  text: `
    UPDATE executions e SET connection_id = $1, lease_until = clock_timestamp() + make_interval(secs => $3::float8)
    FROM worker_connections c
    WHERE e.id = ANY($2::uuid[]) AND e.worker_instance = $4 AND e.phase IN ${heldPhases}
      AND c.id = $1 AND c.worker_id = e.worker_id AND ${isInPool('e', 'c')} AND ${hasKey('c')}
    RETURNING e.id, e.run_id AS "runId"`,
};

/**
 * Hangs executions that a worker says it holds on this connection, where they are of the instance that its token proved, and
 * of the connection's team and pool. Those not returned are not its own.
 */
export async function adoptExecutions(
  db: Queryable,
  input: { connectionId: string; instanceId: string; executionIds: readonly string[]; leaseSeconds: number },
): Promise<{ id: string; runId: string }[]> {
  return await db.query(adopt, [input.connectionId, input.executionIds, input.leaseSeconds, input.instanceId]);
}

const adoptSilently: Statement = {
  name: 'adopt_executions_of_public_worker',
  text: `
    UPDATE executions e SET connection_id = $1, lease_until = clock_timestamp() + make_interval(secs => $2::float8)
    FROM worker_connections c
    WHERE e.worker_instance IS NULL AND e.phase IN ${heldPhases}
      AND c.id = $1 AND c.worker_id = e.worker_id AND ${isInPool('e', 'c')} AND ${hasKey('c')}
      AND NOT EXISTS (SELECT FROM worker_connections o WHERE o.id = e.connection_id)
    RETURNING e.id, e.run_id AS "runId"`,
};

/** Hangs on this connection what earlier connections of the same name, team and pool left, which were of no instance. */
export async function adoptOfPublicWorker(
  db: Queryable,
  input: { connectionId: string; leaseSeconds: number },
): Promise<{ id: string; runId: string }[]> {
  return await db.query(adoptSilently, [input.connectionId, input.leaseSeconds]);
}

const heldBy: Statement = {
  name: 'find_held_by_instances',
  text: `
    SELECT e.id FROM executions e JOIN worker_connections c ON c.id = $1
    WHERE e.worker_instance = ANY($2::text[]) AND e.phase IN ${heldPhases} AND NOT (e.id = ANY($3::uuid[]))
      AND c.worker_id = e.worker_id AND ${isInPool('e', 'c')} AND ${hasKey('c')}`,
};

/** Returns the executions that the record places in these instances of the connection's worker, but for those that it lists. */
export async function findMissing(
  db: Queryable,
  input: { connectionId: string; instanceIds: readonly string[]; listed: readonly string[] },
): Promise<string[]> {
  const rows = await db.query<{ id: string }>(heldBy, [input.connectionId, input.instanceIds, input.listed]);
  return rows.map((row) => row.id);
}

const stopOrders: Statement = {
  name: 'find_stop_orders',
  text: `
    SELECT id, run_id AS "runId", connection_id AS "connectionId", greatest(0, extract(epoch FROM stop_deadline - clock_timestamp()) * 1000)::int AS "graceMs"
    FROM executions WHERE connection_id = ANY($1::uuid[]) AND phase = 'stopping'
      AND (stop_reason = 'ordered' OR stop_deadline < clock_timestamp())`,
};

/** Sandboxes behind these connections that have to be ended: ordered, or their agents did not leave in time. */
export async function findStopOrders(
  db: Queryable,
  connectionIds: readonly string[],
): Promise<{ id: string; runId: string; connectionId: string; graceMs: number }[]> {
  return await db.query(stopOrders, [connectionIds]);
}

const deadConnections: Statement = {
  name: 'find_connections_of_dead_services',
  text: `
    SELECT c.id FROM worker_connections c LEFT JOIN service_instances s ON s.id = c.service_instance_id
    WHERE c.service_instance_id <> $2 AND (s.id IS NULL OR s.seen_at < clock_timestamp() - make_interval(secs => $1::float8))`,
};

/** Connections of service processes that are gone; `asker` lives, however late its own sign of life is. */
export async function findConnectionsOfDeadServices(
  db: Queryable,
  asker: string,
  silentSeconds: number,
): Promise<string[]> {
  const rows = await db.query<{ id: string }>(deadConnections, [silentSeconds, asker]);
  return rows.map((row) => row.id);
}
