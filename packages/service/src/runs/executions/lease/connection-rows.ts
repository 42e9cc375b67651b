/** The rows of `worker_connections`: one for each open WebSocket of a worker. */
import type { SandboxLevel } from '@runyard/contract/workers/worker-protocol';
import type { Queryable } from '../../../platform/store/database/database.ts';
import { defineStatement, uuid } from '../../../platform/store/database/statement.ts';
import type { ExecutionTiming } from '../deps.ts';
import { renewLeasesOf, shortenLeasesOf } from './connection-leases.ts';

const insertConnection = defineStatement({
  name: 'insert_worker_connection',
  text: `
    INSERT INTO worker_connections (id, service_instance_id, worker_id, team_id, key_id) VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT (id) DO NOTHING`,
  row: {},
});

/** Inserts the row of a connection: before its worker sent anything, or after another process deleted it too early. */
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
    UPDATE worker_connections SET instance_id = $2, slots = $3, draining = $4, sandbox = $5::jsonb, adopt_seconds = $6, last_seen_at = clock_timestamp()
    WHERE id = $1`,
  row: {},
});

/** Stores the worker's hello on the row of its connection. */
export async function updateWorkerConnection(
  db: Queryable,
  connection: {
    id: string;
    instanceId: string;
    slots: number;
    draining: boolean;
    sandbox: SandboxLevel;
    adoptSeconds: number;
  },
): Promise<void> {
  const { id, instanceId, slots, draining, sandbox, adoptSeconds } = connection;
  await db.query(updateConnection, [id, instanceId, slots, draining, JSON.stringify(sandbox), adoptSeconds]);
}

const renew = defineStatement({
  name: 'renew_leases_of_connection',
  text: `
    WITH renewed AS (${renewLeasesOf('$1', { leaseSeconds: '$2', startSeconds: '$3', silentSeconds: '$4' })})
    UPDATE worker_connections SET last_seen_at = clock_timestamp() WHERE id = $1 RETURNING id`,
  row: { id: uuid },
});

/**
 * Renews the leases of all executions that the connection holds, because the worker sent a message or a ping. Returns false if the row
 * is gone: another service process counted this one as dead.
 */
export async function renewLeases(
  db: Queryable,
  connectionId: string,
  { leaseSeconds, agentStartSeconds, silentAgentSeconds }: ExecutionTiming,
): Promise<boolean> {
  return (await db.query(renew, [connectionId, leaseSeconds, agentStartSeconds, silentAgentSeconds])).length === 1;
}

const drop = defineStatement({
  name: 'drop_worker_connection',
  text: `
    WITH gone AS (DELETE FROM worker_connections WHERE id = $1 RETURNING adopt_seconds)
    ${shortenLeasesOf('$1', '$2', 'coalesce((SELECT adopt_seconds FROM gone), 0)')}`,
  row: {},
});

/** Deletes the row of a lost connection. Its worker has the grace to connect again before its executions are lost. */
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

/** Returns the connections of service processes that died. `asker` is the calling process: it lives, however late its heartbeat is. */
export async function findConnectionsOfDeadServices(
  db: Queryable,
  asker: string,
  silentSeconds: number,
): Promise<string[]> {
  return (await db.query(deadConnections, [silentSeconds, asker])).map((row) => row.id);
}
