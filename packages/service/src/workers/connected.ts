import type { ConnectedWorker } from '@runyard/contract/workers';
import type { Queryable } from '../store/database/database.ts';

/** Workers ping every 30 s; one that was silent for three of them is not shown. */
const shownForSeconds = 90;

/** Self-hosted workers of the team with a live connection, by name. */
export async function listConnectedWorkers(db: Queryable, teamId: string): Promise<ConnectedWorker[]> {
  return await db.query<ConnectedWorker>(
    `SELECT worker_id AS worker_host, count(*) AS connection_count, min(connected_at) AS connected_at, max(last_seen_at) AS last_seen_at
     FROM worker_connections
     WHERE team_id = $1 AND last_seen_at > now() - make_interval(secs => ${shownForSeconds})
     GROUP BY worker_id ORDER BY worker_id COLLATE "C"`,
    [teamId],
  );
}
