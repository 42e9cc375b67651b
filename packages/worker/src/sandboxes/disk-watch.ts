import { execFile } from 'node:child_process';
import type { SandboxVerdict } from './sandbox.ts';

const shortestPauseMs = 3000;

/** Bytes that the folders take on disk, counted by `du`, which follows no symbolic link and is not bounded by path length. `undefined`: it could not be told. */
function measure(folders: readonly string[]): Promise<number | undefined> {
  return new Promise((resolve) => {
    const options = { env: { PATH: '/usr/bin:/bin', LC_ALL: 'C' }, timeout: 60_000, maxBuffer: 1 << 20 };
    execFile('du', ['-s', '-c', '-x', '--block-size=1', '--', ...folders], options, (_error, stdout) => {
      // Files vanish while it counts: it then ends with 1 and the total is still right enough.
      const total = /^(\d+)\ttotal$/m.exec(stdout)?.[1];
      resolve(total === undefined ? undefined : Number(total));
    });
  });
}

/**
 * Looks every few seconds how much the folders hold and calls `onFull` once, with the verdict, when it is more than `limitMb`. A large tree is
 * looked at less often: counting takes at most a tenth of the time. A quota in the kernel would need a filesystem per sandbox.
 */
export function watchDisk(
  folders: readonly string[],
  limitMb: number,
  onFull: (verdict: SandboxVerdict) => void,
): { stop(): void } {
  let timer: NodeJS.Timeout | undefined;
  let stopped = false;
  const look = async (): Promise<void> => {
    const began = performance.now();
    const bytes = await measure(folders);
    if (stopped) return;
    if (bytes !== undefined && bytes > limitMb * 1024 * 1024) return onFull(verdictOf(bytes, limitMb));
    timer = setTimeout(look, Math.max(shortestPauseMs, 10 * (performance.now() - began)));
    timer.unref();
  };
  timer = setTimeout(look, shortestPauseMs);
  timer.unref();
  return {
    stop() {
      stopped = true;
      clearTimeout(timer);
    },
  };
}

function verdictOf(bytes: number, limitMb: number): SandboxVerdict {
  const usedMb = Math.round(bytes / 1024 / 1024);
  return {
    reason: 'disk_limit',
    message: `workspace and home held ${usedMb} MB, more than the ${limitMb} MB of RUNYARD_SANDBOX_DISK_MB, so the sandbox was ended; let the agent write less, or raise the setting`,
  };
}
