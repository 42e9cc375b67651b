import { monotonicMs } from '../builtin-modules.ts';
import type { TurnProgress } from '../harness/turn-progress.ts';
import type { Reporter } from '../reporting/reporter.ts';
import type { DeferredSaver } from '../workspace-archive/deferred-saver.ts';

/** The values from which `isDue` decides whether the next checkpoint is due. */
export interface CheckpointMoment {
  /** Time since the last checkpoint ended, or since the first checkpoint became possible. */
  readonly sinceMs: number;
  readonly intervalMs: number;
  /** Duration of the last checkpoint. */
  readonly tookMs: number;
  /** Number of checkpoints that failed since the last successful checkpoint. */
  readonly failures: number;
  /** True if no action is in progress. */
  readonly isQuiet: boolean;
}

/** Maximum share of the run's time that checkpoints may take. */
const share = 1 / 10;
const longestDoubling = 6;

/**
 * Returns true if a checkpoint is due. After the interval, a checkpoint is due as soon as no action is in progress, because files then
 * do not change. After two intervals, a checkpoint is due in any case. The interval is longer than `intervalMs` if the last checkpoint took
 * long or checkpoints failed.
 */
export function isDue({ sinceMs, intervalMs, tookMs, failures, isQuiet }: CheckpointMoment): boolean {
  const waitMs = Math.max(intervalMs, tookMs / share) * 2 ** Math.min(failures, longestDoubling);
  return sinceMs >= (isQuiet ? waitMs : 2 * waitMs);
}

export interface CheckpointsOptions {
  readonly seconds: number;
  readonly progress: TurnProgress;
  readonly saver: Pick<DeferredSaver, 'checkpoint'>;
  readonly reporter: Pick<Reporter, 'emit' | 'flush'>;
  /** Returns the number of the current turn. */
  readonly turn: () => number;
  /** Called for the first of several failures in a row: the first checkpoint fails, or a checkpoint fails after a successful checkpoint. */
  readonly onFailed: (reason: string) => void;
  /** Ends all checkpoints. */
  readonly signal: AbortSignal;
}

/** Takes checkpoints of the workspace while turns are in progress. Does not keep the process alive. */
export function startCheckpoints(options: CheckpointsOptions): void {
  const { progress, saver, reporter, signal } = options;
  const intervalMs = options.seconds * 1000;
  let number = 0;
  let tookMs = 0;
  let failures = 0;
  let isTaking = false;
  let since = monotonicMs();

  async function take(): Promise<void> {
    const turn = options.turn();
    const marks = {
      async begin() {
        number += 1;
        const done = progress.doneBlocks === 0 ? {} : { done_blocks: progress.doneBlocks };
        reporter.emit({ type: 'checkpoint', number, state: 'begun', turn, ...done });
        await reporter.flush();
        return number;
      },
      unchanged: () => reporter.emit({ type: 'checkpoint', number, state: 'unchanged', turn }),
    };
    isTaking = true;
    const began = monotonicMs();
    try {
      await saver.checkpoint(turn, marks);
      failures = 0;
    } catch (error) {
      failures += 1;
      if (failures === 1 && !signal.aborted) options.onFailed(error instanceof Error ? error.message : String(error));
    }
    since = monotonicMs();
    tookMs = since - began;
    isTaking = false;
  }

  const timer = setInterval(
    () => {
      if (isTaking) return;
      if (!progress.isAtWork) {
        since = monotonicMs();
        return;
      }
      const sinceMs = monotonicMs() - since;
      if (isDue({ sinceMs, intervalMs, tookMs, failures, isQuiet: progress.isQuiet })) void take();
    },
    Math.min(1000, intervalMs / 4),
  );
  timer.unref();
  signal.addEventListener('abort', () => clearInterval(timer), { once: true });
}
