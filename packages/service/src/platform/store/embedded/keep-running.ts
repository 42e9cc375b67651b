/** Starts the server again when it ends, while its service runs. */
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

/** After this number of ends in a minute, the next start waits. */
const promptRestartsPerMinute = 10;
/** The new server cannot start before the last process of the dead server has ended. So shorter waits are usual and are not logged. */
const quietWaitMs = 1_000;

/** Only one process starts the server of a folder, so no jitter is needed. */
const noJitter = () => 0.5;

/** Returns the milliseconds before the next start after `failures` failed starts in a row: 100, doubled up to 30,000. */
export const waitAfter = (failures: number): number =>
  backoffMs({ firstMs: 100, longestMs: 30_000 }, failures, noJitter);

/**
 * Watches the server and starts it again whenever it ends: a full disk or a lack of memory may last for hours, and the service must recover
 * by itself.
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
        // Everyone may read this text in /readyz. PostgreSQL's own message is only in the log.
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
