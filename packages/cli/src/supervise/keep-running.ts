import { backoffMs, delay } from '@runyard/system/backoff';
import { describeExit, type Program } from './program.ts';

/** A program that is restarted whenever it ends by itself. */
export interface RestartedProgram {
  /** Returns the running program, or `undefined` while the program is being restarted. */
  current(): Program | undefined;
  /** Stops the restarts, and sends the signal that makes the program finish its work and end. Waits until the program has ended. */
  endBy(signal: NodeJS.Signals): Promise<void>;
  /** Stops the restarts and the program. */
  stop(graceMs: number): Promise<void>;
}

export interface KeepRunning {
  readonly name: string;
  readonly first: Program;
  /**
   * Starts the program again and resolves when the program is ready. If the start fails or is aborted, no process of the program may be
   * left.
   */
  readonly restart: (signal: AbortSignal) => Promise<Program>;
  readonly report: (message: string) => void;
  /** Milliseconds before the first restart. If the program ends again and again, each wait is twice the previous one, up to 30 s. */
  readonly firstWaitMs?: number;
  /** If the program ran for at least this time, the next wait is `firstWaitMs` again. */
  readonly healthyMs?: number;
}

const longestWaitMs = 30_000;
/** The waits are not changed at random, because only this process restarts the program. */
const noJitter = () => 0.5;

/** Restarts a program whenever it ends by itself. The waits before restarts grow. Reports each restart. */
export function keepRunning(keep: KeepRunning): RestartedProgram {
  const waits = { firstMs: keep.firstWaitMs ?? 500, longestMs: longestWaitMs };
  const stopping = new AbortController();
  let current: Program | undefined = keep.first;

  async function watch(): Promise<void> {
    let ends = 0;
    let startedAt = performance.now();
    let ended = `ended by ${describeExit(await keep.first.exited)}`;
    while (!stopping.signal.aborted) {
      current = undefined;
      if (performance.now() - startedAt >= (keep.healthyMs ?? 60_000)) ends = 0;
      ends += 1;
      const wait = backoffMs(waits, ends, noJitter);
      keep.report(`the ${keep.name} ${ended}; starting it again in ${wait / 1000} s`);
      try {
        await delay(wait, stopping.signal);
      } catch {
        return;
      }
      startedAt = performance.now();
      try {
        current = await keep.restart(stopping.signal);
        keep.report(`the ${keep.name} runs again (process ${current.pid})`);
        ended = `ended by ${describeExit(await current.exited)}`;
      } catch (error) {
        if (stopping.signal.aborted) return;
        ended = `did not start: ${error instanceof Error ? error.message : String(error)}`;
      }
    }
  }
  const watching = watch();

  return {
    current: () => current,
    async endBy(signal) {
      stopping.abort();
      current?.signal(signal);
      await watching;
    },
    async stop(graceMs) {
      stopping.abort();
      await current?.stop(graceMs);
      // Stops the program again, because a restart may have started a new process at the same time.
      await Promise.resolve();
      await current?.stop(graceMs);
      await watching;
    },
  };
}
