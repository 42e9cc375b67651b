/** The service process's own sign of life, and the loops that run beside the requests. */
import type { Database, Statement } from '../store/database.ts';
import type { Engine } from './engine.ts';

/** A service process that was silent for so long is gone. */
export const serviceSilentSeconds = 20;

const beat: Statement = {
  name: 'beat_service_instance',
  text: `
    INSERT INTO service_instances (id) VALUES ($1)
    ON CONFLICT (id) DO UPDATE SET seen_at = clock_timestamp()`,
};

/** Says that this process lives. */
export async function beatServiceInstance(db: Database, id: string): Promise<void> {
  await db.query(beat, [id]);
}

const forget: Statement = {
  name: 'forget_service_instances',
  text: "DELETE FROM service_instances WHERE id = $1 OR seen_at < clock_timestamp() - interval '1 hour'",
};

/** This process ends. */
export async function forgetServiceInstance(db: Database, id: string): Promise<void> {
  await db.query(forget, [id]);
}

const extend: Statement = {
  name: 'extend_leases_after_outage',
  text: `
    UPDATE executions SET
      lease_until = greatest(lease_until, clock_timestamp() + make_interval(secs => $1::float8)),
      claim_deadline = CASE WHEN phase = 'assigned' THEN greatest(claim_deadline, clock_timestamp() + make_interval(secs => $1::float8)) END
    WHERE phase IN ('assigned', 'claimed', 'running', 'idle', 'stopping')
      AND NOT EXISTS (SELECT FROM service_instances WHERE seen_at > clock_timestamp() - make_interval(secs => $2::float8))
    RETURNING id`,
};

/**
 * After a time in which no service process lived, nobody could renew a lease: every execution gets the reconnect grace
 * anew. Called before the first beat and the first sweep.
 */
export async function extendLeasesAfterOutage(engine: Engine): Promise<number> {
  const rows = await engine.db.query(extend, [engine.timing.reconnectGraceSeconds, serviceSilentSeconds]);
  return rows.length;
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
