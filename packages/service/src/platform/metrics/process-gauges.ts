import { monitorEventLoopDelay } from 'node:perf_hooks';
import type pg from 'pg';
import { type ReadGauges, reading } from './gauges.ts';
import { count } from './record.ts';

/** Milliseconds between two measurements of the event loop. A measured delay includes these milliseconds, so the gauge subtracts them. */
const resolutionMs = 10;

/** The pool of database connections. `shares.waiting`: number of works that wait for a connection. */
interface ConnectionPool {
  readonly pool: pg.Pool;
  readonly shares: { readonly waiting: number };
}

/**
 * Starts to measure the process: its event loop, memory, processor time and pool of database connections. Returns a function that reads the
 * gauges and a function that stops the measurement.
 */
export function measureProcess({ pool, shares }: ConnectionPool): {
  readonly read: ReadGauges;
  readonly stop: () => void;
} {
  const loop = monitorEventLoopDelay({ resolution: resolutionMs });
  loop.enable();
  let cpuSeconds = 0;
  const delay = (percentile: string, nanoseconds: number) => {
    const seconds = Number.isFinite(nanoseconds) ? Math.max(0, nanoseconds / 1e9 - resolutionMs / 1e3) : 0;
    return reading('runyard_event_loop_delay_seconds', { percentile }, seconds);
  };
  const read: ReadGauges = () => {
    const { user, system } = process.cpuUsage();
    const usedSeconds = (user + system) / 1e6;
    count('runyard_process_cpu_seconds_total', {}, usedSeconds - cpuSeconds);
    cpuSeconds = usedSeconds;
    const readings = [
      delay('50', loop.percentile(50)),
      delay('99', loop.percentile(99)),
      delay('100', loop.max),
      reading('runyard_process_resident_memory_bytes', {}, process.memoryUsage.rss()),
      reading('runyard_database_connections', { state: 'idle' }, pool.idleCount),
      reading('runyard_database_connections', { state: 'busy' }, pool.totalCount - pool.idleCount),
      reading('runyard_database_connections_max', {}, pool.options.max ?? 10),
      reading('runyard_database_waiting', {}, pool.waitingCount + shares.waiting),
    ];
    loop.reset();
    return readings;
  };
  return { read, stop: () => void loop.disable() };
}
