/** The line that shows how much of a file has arrived. */
import { formatBytes } from '@runyard/contract/wire/byte-size';
import { formatDuration } from './amounts.ts';

/** The terminal of the line. */
export interface ProgressScreen {
  readonly isTTY?: boolean;
  readonly columns?: number;
  write(text: string): unknown;
}

const betweenLinesMs = 200;
const clearLine = '\r\u001b[K';

/** The bytes of the file that have arrived, those of them that this process has received, and the time for the latter. */
interface Arrived {
  readonly bytes: number;
  readonly newBytes: number;
  readonly elapsedMs: number;
}

/** Returns the line, such as `[####------]  40%  800 MB of 2.0 GB  85 MB/s  14 s left`, with at most `columns` characters. */
export function progressLine(total: number | undefined, arrived: Arrived, columns: number): string {
  const { bytes, newBytes, elapsedMs } = arrived;
  const perSecond = elapsedMs === 0 ? 0 : (newBytes / elapsedMs) * 1000;
  const speed = perSecond === 0 ? '' : `  ${formatBytes(Math.round(perSecond))}/s`;
  if (total === undefined) return `${formatBytes(bytes)}${speed}`.slice(0, columns);
  const part = total === 0 ? 1 : Math.min(1, bytes / total);
  const left = perSecond === 0 ? '' : `  ${formatDuration(Math.max(1000, ((total - bytes) / perSecond) * 1000))} left`;
  const words = `${String(Math.floor(part * 100)).padStart(3)}%  ${formatBytes(bytes)} of ${formatBytes(total)}${speed}${left}`;
  const width = Math.min(40, columns - words.length - 3);
  const full = Math.round(part * width);
  const bar = width < 5 ? '' : `[${'#'.repeat(full)}${'-'.repeat(width - full)}] `;
  return `${bar}${words}`.slice(0, columns);
}

export interface Progress {
  /** Sets how many bytes have arrived. */
  set(bytes: number): void;
  /** Removes the line. */
  end(): void;
}

/** Shows the line on a terminal. Shows nothing if the screen is not a terminal. `from`: bytes that had arrived before. */
export function showProgress(screen: ProgressScreen, total: number | undefined, from: number): Progress {
  const startedAt = performance.now();
  let shownAt = startedAt;
  let isShown = false;
  return {
    set(bytes) {
      const now = performance.now();
      if (!screen.isTTY || now - shownAt < betweenLinesMs) return;
      shownAt = now;
      isShown = true;
      const arrived = { bytes, newBytes: bytes - from, elapsedMs: now - startedAt };
      screen.write(`${clearLine}${progressLine(total, arrived, (screen.columns ?? 80) - 1)}`);
    },
    end() {
      if (isShown) screen.write(clearLine);
    },
  };
}
