/** The heartbeat of each service process. */
import type { ServiceReport } from '@runyard/contract/team/installation';
import type { Database, Queryable } from '../../../platform/store/database/database.ts';
import {
  boolean,
  defineStatement,
  integer,
  json,
  nullable,
  type RowOf,
  timestamp,
  uuid,
} from '../../../platform/store/database/statement.ts';
import type { ExecutionDeps, ExecutionTiming } from '../deps.ts';
import { assignedPhases } from '../phases.ts';
import { fromNow } from '../time.ts';

/** A service process without a heartbeat for this long counts as dead. */
export const serviceSilentSeconds = 20;

/**
 * If no service process has had a heartbeat for this time, there is an outage. During an outage no lease can be renewed, so an expired
 * lease does not prove a loss. A shorter interruption is not detected. The time is at most half a lease, so that after such an interruption
 * at least half of each lease is left.
 */
export const outageSeconds = (timing: ExecutionTiming): number =>
  Math.min(serviceSilentSeconds, timing.leaseSeconds / 2);

/** Returns the time between two heartbeats. */
export const heartbeatMs = (timing: ExecutionTiming): number => (outageSeconds(timing) * 1000) / 4;

/** Channel of notices about service processes that have started; the payload is the id of the process. */
const arrivalsChannel = 'runyard_processes';

/** One statement stores the heartbeat and extends the leases, so that no sweep can see the new heartbeat together with the old leases. */
const beat = defineStatement({
  name: 'beat_service_instance',
  text: `
    WITH outage AS MATERIALIZED (
      SELECT NOT EXISTS (SELECT FROM service_instances WHERE seen_at > clock_timestamp() - make_interval(secs => $3::float8)) AS was
    ), extended AS (
      UPDATE executions SET
        lease_until = greatest(lease_until, ${fromNow('$2')}),
        claim_deadline = CASE WHEN phase = 'assigned' THEN greatest(claim_deadline, ${fromNow('$2')}) END
      WHERE is_live AND phase IN ${assignedPhases} AND (SELECT was FROM outage)
      RETURNING id
    ), sign AS (
      INSERT INTO service_instances (id) VALUES ($1) ON CONFLICT (id) DO UPDATE SET seen_at = clock_timestamp()
      RETURNING xmax = 0 AS is_first
    )
    SELECT (SELECT count(*) FROM extended) AS extended,
      NOT EXISTS (SELECT FROM service_instances s WHERE s.id <> $1 AND s.seen_at > clock_timestamp() - make_interval(secs => $4::float8)) AS is_alone,
      CASE WHEN is_first THEN $1::uuid END AS ${arrivalsChannel}
    FROM sign`,
  row: { extended: integer, is_alone: boolean },
});

/** Tells `db` when other processes start. They are unknown to this process until its next heartbeat. */
export async function watchArrivals(db: Database): Promise<void> {
  await db.listen(arrivalsChannel, () => db.setAlone(false));
}

/**
 * Stores a heartbeat of this process. After an outage (all processes were down, or the machine slept), workers get the time to connect
 * again: the leases of all assigned executions are extended. Returns the number of these executions. Call this function before the first
 * sweep. Also tells `db` whether other processes are alive: if not, its notices after commits stay in this process.
 */
export async function beatServiceInstance({ db, timing }: ExecutionDeps, id: string): Promise<number> {
  const values = [id, timing.reconnectGraceSeconds, outageSeconds(timing), serviceSilentSeconds];
  const [row] = await db.query(beat, values).catch((error: unknown) => {
    db.setAlone(false);
    throw error;
  });
  db.setAlone(row?.is_alone === true);
  return row?.extended ?? 0;
}

const readAlive = defineStatement({
  name: 'read_service_instances_alive',
  text: 'SELECT id FROM service_instances WHERE seen_at > clock_timestamp() - make_interval(secs => $1::float8)',
  row: { id: uuid },
});

/** Returns the ids of the service processes that had a heartbeat in the last `withinSeconds` seconds. */
export async function readAliveInstances(db: Database, withinSeconds: number): Promise<string[]> {
  return (await db.query(readAlive, [withinSeconds])).map(({ id }) => id);
}

const forget = defineStatement({
  name: 'forget_service_instances',
  text: "DELETE FROM service_instances WHERE id = $1 OR seen_at < clock_timestamp() - interval '1 hour'",
  row: {},
});

/** Deletes the heartbeat of this process, which is about to end, and the heartbeats of processes that died more than an hour ago. */
export async function forgetServiceInstance(db: Database, id: string): Promise<void> {
  await db.query(forget, [id]);
}

const storeReport = defineStatement({
  name: 'store_service_report',
  text: 'UPDATE service_instances SET report = $2::jsonb WHERE id = $1',
  row: {},
});

/** Stores what a process says about itself. */
export async function storeServiceReport(db: Queryable, id: string, report: ServiceReport): Promise<void> {
  await db.query(storeReport, [id, JSON.stringify(report)]);
}

const readAll = defineStatement({
  name: 'read_service_instances',
  text: `
    SELECT report, started_at, seen_at AS last_seen_at, seen_at > clock_timestamp() - interval '${serviceSilentSeconds} seconds' AS is_alive
    FROM service_instances WHERE seen_at > clock_timestamp() - interval '1 hour' ORDER BY started_at, id LIMIT 1000`,
  row: {
    report: nullable(json<ServiceReport>()),
    started_at: timestamp,
    last_seen_at: timestamp,
    is_alive: boolean,
  },
});

/** Returns the processes that had a heartbeat in the last hour, and have not ended by themselves. The oldest is first. */
export const readServiceInstances = (db: Queryable): Promise<RowOf<typeof readAll>[]> => db.query(readAll);
