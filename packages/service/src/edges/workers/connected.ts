/** The workers that are connected to any process of the service, as the API shows them. */
import { maxConnectionsListed } from '@runyard/contract/limits';
import type { SandboxLevel } from '@runyard/contract/workers/worker-protocol';
import type { ConnectedWorker, WorkerConnection } from '@runyard/contract/workers/workers';
import type { Queryable } from '../../platform/store/database/database.ts';
import {
  boolean,
  defineStatement,
  integer,
  json,
  nullable,
  type RowOf,
  text,
  timestamp,
} from '../../platform/store/database/statement.ts';
import { holdsSlot } from '../../runs/executions/queue/may-take.ts';

/** A worker pings every 30 s. After three missed pings the worker is not listed any more. */
const listedForSeconds = 90;

const row = {
  worker_host: text(),
  connection_count: integer,
  first_connected_at: timestamp,
  seen_at: timestamp,
  slots: nullable(integer),
  used: integer,
  draining: boolean,
  problem: nullable(text()),
  sandbox: nullable(json<SandboxLevel>()),
  version: nullable(text()),
  disk_free_bytes: nullable(integer),
  disk_total_bytes: nullable(integer),
  connected_at: timestamp,
  last_seen_at: timestamp,
};

/**
 * Returns the SQL that reads the connections of some workers with their slots in use. `busy` is an SQL condition that selects the
 * executions (`e`) of these workers.
 */
const connectionsOf = (connections: string, busy: string): string => `
  SELECT c.worker_id AS worker_host, c.connection_count, c.first_connected_at, c.seen_at, c.slots, coalesce(u.used, 0) AS used, c.draining, c.problem,
    c.sandbox, c.version, c.disk_free_bytes, c.disk_total_bytes, c.connected_at, c.last_seen_at
  FROM (
    SELECT *, count(*) OVER same AS connection_count, min(connected_at) OVER same AS first_connected_at,
      max(last_seen_at) OVER same AS seen_at, row_number() OVER (PARTITION BY worker_id ORDER BY connected_at, id) AS place
    FROM worker_connections
    WHERE ${connections} AND last_seen_at > now() - make_interval(secs => ${listedForSeconds})
    WINDOW same AS (PARTITION BY worker_id)
  ) c LEFT JOIN (
    SELECT e.connection_id, count(*) AS used FROM executions e WHERE ${busy} AND ${holdsSlot('e')} GROUP BY e.connection_id
  ) u ON u.connection_id = c.id
  WHERE c.place <= ${maxConnectionsListed} ORDER BY c.worker_id COLLATE "C", c.place`;

const listOfTeam = defineStatement({
  name: 'list_connected_workers',
  text: connectionsOf('team_id = $1', 'e.team_id = $1'),
  row,
});

const listHosted = defineStatement({
  name: 'list_hosted_workers',
  text: connectionsOf('team_id IS NULL', `e.pool = ''`),
  row,
});

type Row = RowOf<typeof listOfTeam>;

/** Returns the self-hosted workers of the team that have an open connection, sorted by name. */
export const listConnectedWorkers = async (db: Queryable, teamId: string): Promise<ConnectedWorker[]> =>
  toWorkers(await db.query(listOfTeam, [teamId]));

/** Returns the workers of the hosted pool that have an open connection, sorted by name. */
export const listHostedWorkers = async (db: Queryable): Promise<ConnectedWorker[]> =>
  toWorkers(await db.query(listHosted));

function toWorkers(rows: readonly Row[]): ConnectedWorker[] {
  const workers = new Map<string, ConnectedWorker>();
  for (const row of rows) {
    const { worker_host, connection_count, first_connected_at: connected_at, seen_at: last_seen_at } = row;
    const known = workers.get(worker_host);
    if (known) known.connections.push(toConnection(row));
    else
      workers.set(worker_host, {
        worker_host,
        connection_count,
        connected_at,
        last_seen_at,
        connections: [toConnection(row)],
      });
  }
  return [...workers.values()];
}

const toConnection = (row: Row): WorkerConnection => ({
  ...(row.sandbox === null ? {} : { backend: row.sandbox.backend }),
  features: row.sandbox?.features ?? [],
  missing_features: row.sandbox?.missing ?? [],
  slots: { used: row.used, ...(row.slots === null ? {} : { total: row.slots }) },
  ...(row.version === null ? {} : { version: row.version }),
  ...(row.disk_free_bytes === null || row.disk_total_bytes === null
    ? {}
    : { disk: { free_bytes: row.disk_free_bytes, total_bytes: row.disk_total_bytes } }),
  draining: row.draining,
  ...(row.problem === null ? {} : { problem: row.problem }),
  connected_at: row.connected_at,
  last_seen_at: row.last_seen_at,
});
