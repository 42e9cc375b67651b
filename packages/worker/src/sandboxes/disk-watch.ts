import type { SandboxVerdict } from './sandbox.ts';

const shortestPauseMs = 1000;
const longestMeasurementMs = 60_000;
/**
 * After this number of failed measurements in a row, the sandbox is ended. A single failure is ignored, because the machine may have been
 * busy.
 */
const mostFailures = 2;

export interface DiskWatch {
  /** Returns the bytes in use. The measurement has failed if this function rejects, or has no result when the signal aborts. */
  readonly measure: (signal: AbortSignal) => Promise<number>;
  readonly limitMb: number;
  /** Called once, when the limit is exceeded or the measurements fail. */
  readonly onFull: (verdict: SandboxVerdict) => void;
  /** Time limit of one measurement in milliseconds. Default: 60,000. */
  readonly measurementMs?: number;
}

/**
 * Measures the disk of a sandbox again and again. The longer a measurement takes, the longer is the pause after it, so that
 * measurements take at most a tenth of the time. If two measurements in a row fail or take too long, the sandbox counts as over the
 * limit. Otherwise an agent could avoid the limit by making measurements fail.
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

/**
 * Returns the result of the measurement, or an error if it has failed. Stops waiting when the time is over, even if the measurement
 * ignores the signal, for example because its program hangs on a disk.
 */
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
    message: `workspace and home had ${usedMb} MB, more than the ${limitMb} MB of RUNYARD_SANDBOX_DISK_MB, so the sandbox was ended; let the agent write less, or raise the setting`,
  };
}

function unmeasured(error: Error): SandboxVerdict {
  return {
    reason: 'disk_limit',
    message: `the size of workspace and home could not be measured (${error.message}), so the sandbox was ended, because its limit could not be checked (RUNYARD_SANDBOX_DISK_MB); let the agent make fewer files`,
  };
}
