import type { ConnectedWorker } from '@runyard/contract/workers/workers';
import type { Queryable } from '../../platform/store/database/database.ts';
import { defineStatement, integer, text, timestamp } from '../../platform/store/database/statement.ts';

/** A worker pings every 30 s. After three missed pings it is not listed any more. */
const listedForSeconds = 90;

const listConnected = defineStatement({
  name: 'list_connected_workers',
  text: `
    SELECT worker_id AS worker_host, count(*) AS connection_count, min(connected_at) AS connected_at, max(last_seen_at) AS last_seen_at
    FROM worker_connections
    WHERE team_id = $1 AND last_seen_at > now() - make_interval(secs => ${listedForSeconds})
    GROUP BY worker_id ORDER BY worker_id COLLATE "C"`,
  row: { worker_host: text(), connection_count: integer, connected_at: timestamp, last_seen_at: timestamp },
});

/** Returns the self-hosted workers of the team with an open connection, by name. */
export async function listConnectedWorkers(db: Queryable, teamId: string): Promise<ConnectedWorker[]> {
  return await db.query(listConnected, [teamId]);
}
