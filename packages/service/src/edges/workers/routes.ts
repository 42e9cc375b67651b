import { routes } from '@runyard/contract/routes';
import type { ConnectedWorker } from '@runyard/contract/workers/workers';
import type { ServedRoute } from '../../platform/serving/served-route.ts';
import type { Database, Queryable } from '../../platform/store/database/database.ts';
import { defineStatement, integer, text, timestamp } from '../../platform/store/database/statement.ts';
import { serve } from '../../team/access/serve.ts';

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
async function listConnectedWorkers(db: Queryable, teamId: string): Promise<ConnectedWorker[]> {
  return await db.query(listConnected, [teamId]);
}

/** The list of the self-hosted workers that are connected, and the addresses of the workers of the installation. */
export const workerRoutes = (db: Database, egressRanges: readonly string[]): readonly ServedRoute[] => [
  serve(routes.listConnectedWorkers, async ({ principal }) => ({
    workers: await listConnectedWorkers(db, principal.teamId),
  })),
  serve(routes.getEgressRanges, async () => ({ cidrs: [...egressRanges] })),
];
