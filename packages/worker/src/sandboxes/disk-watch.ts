import { execFile } from 'node:child_process';

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
 * Looks every few seconds how much the folders hold and calls `onFull` once when it is more than `limitMb`. A large tree is
 * looked at less often: counting takes at most a tenth of the time. A quota in the kernel would need a filesystem per sandbox.
 */
export function watchDisk(
  folders: readonly string[],
  limitMb: number,
  onFull: (usedMb: number) => void,
): { stop(): void } {
  let timer: NodeJS.Timeout | undefined;
  let stopped = false;
  const look = async (): Promise<void> => {
    const began = performance.now();
    const bytes = await measure(folders);
    if (stopped) return;
    if (bytes !== undefined && bytes > limitMb * 1024 * 1024) return onFull(Math.round(bytes / 1024 / 1024));
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
