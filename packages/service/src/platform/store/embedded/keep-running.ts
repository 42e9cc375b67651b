/** Starts the PostgreSQL server again whenever it ends while the service runs. */
import { backoffMs, delay } from '@runyard/system/backoff';
import type { StoreLog } from '../database/log.ts';
import type { Postmaster } from './postmaster.ts';

/** A server that is started again whenever it ends. */
export interface RestartedPostmaster {
  /** Returns why the server does not run and when the next start is tried; null if it runs. */
  problem(): string | null;
  /** Stops the server, or the attempt to start it, permanently. */
  stop(): Promise<void>;
}

/** If the server has ended more often than this within a minute, wait before the next start. */
const promptRestartsPerMinute = 10;
/**
 * A failed start is logged only if the next wait is at least this long. The first starts often fail, because a new server cannot start
 * before the last process of the dead server has ended.
 */
const quietWaitMs = 1_000;

/** Makes the waits exact. Only one process starts the server of a folder, so random differences between the waits are not needed. */
const noJitter = () => 0.5;

/** Returns how many milliseconds to wait after `failures` failed starts in a row: 100 after the first, then twice as long each time, up to 30,000. */
export const waitAfter = (failures: number): number =>
  backoffMs({ firstMs: 100, longestMs: 30_000 }, failures, noJitter);

/**
 * Watches the server and starts it again whenever it ends. Never gives up, because a full disk or a lack of memory may last for hours,
 * and the service must recover by itself.
 */
export function keepRunning(
  first: Postmaster,
  startAgain: () => Promise<Postmaster>,
  log: StoreLog,
): RestartedPostmaster {
  const stopping = new AbortController();
  let problem: string | null = null;
  let ends: number[] = [];
  let current: Promise<Postmaster | undefined> = Promise.resolve(first);

  const watch = (postmaster: Postmaster) => {
    void postmaster.exited.then((reason) => {
      if (!stopping.signal.aborted) current = restart(reason);
    });
  };
  const restart = async (reason: string): Promise<Postmaster | undefined> => {
    ends = [...ends.filter((time) => time > Date.now() - 60_000), Date.now()];
    let failures = Math.max(0, ends.length - promptRestartsPerMinute);
    problem = `the embedded PostgreSQL ended (${reason}) and is being started again`;
    log.error({ reason }, 'the embedded PostgreSQL ended; starting it again');
    for (;;) {
      if (failures > 0) await delay(waitAfter(failures), stopping.signal).catch(() => undefined);
      if (stopping.signal.aborted) return undefined;
      try {
        const postmaster = await startAgain();
        if (problem !== null) log.info({ failed_starts: failures }, 'the embedded PostgreSQL runs again');
        problem = null;
        watch(postmaster);
        return postmaster;
      } catch (error) {
        failures += 1;
        const message = error instanceof Error ? error.message : String(error);
        const nextInMs = waitAfter(failures);
        // Everyone may read this text in /readyz, so it does not contain PostgreSQL's own message. The log has that message.
        problem = `the embedded PostgreSQL does not start (failed ${failures} times, the next try is in ${nextInMs / 1000} s); the log of the service says why`;
        if (nextInMs >= quietWaitMs)
          log.error(
            { error: message, failed_starts: failures, next_in_ms: nextInMs },
            'the embedded PostgreSQL does not start',
          );
      }
    }
  };

  watch(first);
  return {
    problem: () => problem,
    stop: async () => {
      stopping.abort();
      await (await current)?.stop();
    },
  };
}
