import type { SandboxVerdict } from './sandbox.ts';

const shortestPauseMs = 1000;
const longestMeasurementMs = 60_000;
/** One failure may be the machine's, which had no process to spare. */
const mostFailures = 2;

export interface DiskWatch {
  /** Bytes in use. What rejects, or does not come before the signal, is a failure. */
  readonly measure: (signal: AbortSignal) => Promise<number>;
  readonly limitMb: number;
  /** Called once, with the verdict, when it is more than the limit or cannot be told. */
  readonly onFull: (verdict: SandboxVerdict) => void;
  /** Time for one measurement in milliseconds. Default: 60,000. */
  readonly measurementMs?: number;
}

/**
 * Measures again and again. What takes long is measured less often, so that it takes at most a tenth of the time. A measurement
 * that fails or is late twice in a row counts as over the limit: else an agent could turn the limit off by making it fail.
 */
export function watchDisk(watch: DiskWatch): { stop(): void } {
  const { limitMb, measurementMs = longestMeasurementMs } = watch;
  let timer: NodeJS.Timeout | undefined;
  let stopped = false;
  let failures = 0;
  const lookIn = (ms: number): void => {
    timer = setTimeout(look, ms);
    timer.unref();
  };
  const look = async (): Promise<void> => {
    const began = performance.now();
    const outcome = await inTime(watch.measure, measurementMs);
    if (stopped) return;
    failures = outcome instanceof Error ? failures + 1 : 0;
    if (outcome instanceof Error && failures >= mostFailures) return watch.onFull(unmeasured(outcome));
    if (!(outcome instanceof Error) && outcome > limitMb * 1024 * 1024) return watch.onFull(full(outcome, limitMb));
    lookIn(failures > 0 ? 0 : Math.max(shortestPauseMs, 10 * (performance.now() - began)));
  };
  lookIn(shortestPauseMs);
  return {
    stop() {
      stopped = true;
      clearTimeout(timer);
    },
  };
}

/** Its result, or why there is none. Does not wait for what ignores the signal: a program that hangs on a disk obeys nothing. */
async function inTime(measure: DiskWatch['measure'], ms: number): Promise<number | Error> {
  const signal = AbortSignal.timeout(ms);
  const late = new Promise<Error>((resolve) => {
    const expire = () => resolve(new Error(`it took more than ${ms / 1000} s`));
    signal.addEventListener('abort', expire, { once: true });
  });
  return await Promise.race([late, measure(signal).catch((error: Error) => error)]);
}

function full(bytes: number, limitMb: number): SandboxVerdict {
  const usedMb = Math.round(bytes / 1024 / 1024);
  return {
    reason: 'disk_limit',
    message: `workspace and home held ${usedMb} MB, more than the ${limitMb} MB of RUNYARD_SANDBOX_DISK_MB, so the sandbox was ended; let the agent write less, or raise the setting`,
  };
}

function unmeasured(error: Error): SandboxVerdict {
  return {
    reason: 'disk_limit',
    message: `what workspace and home hold could not be measured (${error.message}), so the sandbox was ended rather than left without its limit (RUNYARD_SANDBOX_DISK_MB); let the agent make fewer files`,
  };
}
