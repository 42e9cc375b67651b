/** The service process's own sign of life, and the loops that run beside the requests. */
import type { Database, Statement } from '../../store/database/database.ts';
import type { Engine, EngineTiming } from '../engine.ts';
import { handedOutPhases } from '../transitions/phases.ts';

/** A service process that was silent for so long is gone. */
export const serviceSilentSeconds = 20;

/**
 * Where no service process gave a sign of life for so long, nobody could renew leases: that an execution's lease ran out
 * says nothing then. Half a lease, so that what is left of it outlives every shorter outage.
 */
export const outageSeconds = (timing: EngineTiming): number => Math.min(serviceSilentSeconds, timing.leaseSeconds / 2);

/** How often a service process gives its sign of life. */
export const heartbeatMs = (timing: EngineTiming): number => (outageSeconds(timing) * 1000) / 4;

/** One statement: where it is held up, no sweep can see the new sign of life with the old leases. */
const beat: Statement = {
  name: 'beat_service_instance',
  text: `
    WITH outage AS MATERIALIZED (
      SELECT NOT EXISTS (SELECT FROM service_instances WHERE seen_at > clock_timestamp() - make_interval(secs => $3::float8)) AS was
    ), extended AS (
      UPDATE executions SET
        lease_until = greatest(lease_until, clock_timestamp() + make_interval(secs => $2::float8)),
        claim_deadline = CASE WHEN phase = 'assigned' THEN greatest(claim_deadline, clock_timestamp() + make_interval(secs => $2::float8)) END
      WHERE phase IN ${handedOutPhases} AND (SELECT was FROM outage)
      RETURNING id
    ), sign AS (
      INSERT INTO service_instances (id) VALUES ($1) ON CONFLICT (id) DO UPDATE SET seen_at = clock_timestamp()
    )
    SELECT count(*)::int AS extended FROM extended`,
};

/**
 * Says that this process lives. Where none did for a while (all were down, or the machine slept), every execution gets the
 * reconnect grace anew; returns how many that were. Called before the first sweep.
 */
export async function beatServiceInstance({ db, timing }: Engine, id: string): Promise<number> {
  const [row] = await db.query<{ extended: number }>(beat, [id, timing.reconnectGraceSeconds, outageSeconds(timing)]);
  return row?.extended ?? 0;
}

const forget: Statement = {
  name: 'forget_service_instances',
  text: "DELETE FROM service_instances WHERE id = $1 OR seen_at < clock_timestamp() - interval '1 hour'",
};

/** This process ends. */
export async function forgetServiceInstance(db: Database, id: string): Promise<void> {
  await db.query(forget, [id]);
}

/** Calls `work` every `intervalMs`, never twice at once; errors are logged and the next round tries again. Returns what stops it. */
export function repeat(
  engine: Engine,
  name: string,
  intervalMs: number,
  work: () => Promise<unknown>,
): () => Promise<void> {
  let stopped = false;
  let timer: NodeJS.Timeout | undefined;
  let current: Promise<void> = Promise.resolve();
  const round = () => {
    current = work().then(
      () => undefined,
      (error: unknown) => engine.log.error({ err: error }, `${name} failed; the next round tries again`),
    );
    void current.then(() => {
      if (!stopped) timer = setTimeout(round, intervalMs * (0.9 + 0.2 * engine.random()));
    });
  };
  round();
  return async () => {
    stopped = true;
    clearTimeout(timer);
    await current;
  };
}
