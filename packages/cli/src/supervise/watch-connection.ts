import { closeSync, openSync, readSync } from 'node:fs';
import { sizeOf } from './log-file.ts';

/** Maximum number of bytes that are read at one time. The next read continues after these bytes. */
const mostBytes = 64 * 1024;

/**
 * Reports when the worker that writes the log has no connection to the service, with the reason, and when it is connected again. Only the
 * log shows that a running worker cannot connect. Returns a function that stops the reports.
 */
export function watchConnection(logFile: string, report: (message: string) => void, everyMs = 1_000): () => void {
  let read = Math.max(0, sizeOf(logFile) - mostBytes);
  let rest = '';
  let isKnownLost = false;
  const startedAt = Date.now();

  const look = (): void => {
    // A log that was rotated begins again.
    if (sizeOf(logFile) < read) read = 0;
    const lines = (rest + readFrom(logFile, read, (bytes) => (read += bytes))).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) {
      const entry = entryOf(line);
      // Skips old lines, because the log still has lines of earlier workers.
      if (entry === undefined || entry.time < startedAt - 5_000) continue;
      if (entry.connection === 'open') {
        if (isKnownLost) report('the worker is connected to the service');
        isKnownLost = false;
      } else {
        report(`the worker has ${entry.msg}`);
        isKnownLost = true;
      }
    }
  };
  const timer = setInterval(look, everyMs).unref();
  return () => clearInterval(timer);
}

interface ConnectionEntry {
  readonly time: number;
  readonly connection: 'open' | 'none';
  readonly msg: string;
}

/** Returns the entry of a line about the connection; undefined for other lines. */
function entryOf(line: string): ConnectionEntry | undefined {
  if (!line.includes('"connection":"')) return undefined;
  try {
    const { level, time, connection, msg } = JSON.parse(line);
    const isShown = connection === 'open' || (connection === 'none' && level >= 40);
    return isShown && typeof time === 'number' && typeof msg === 'string' ? { time, connection, msg } : undefined;
  } catch {
    return undefined;
  }
}

/** Returns the text after a position, and calls `took` with the number of its bytes; '' if the file does not exist. */
function readFrom(file: string, from: number, took: (bytes: number) => void): string {
  let descriptor: number;
  try {
    descriptor = openSync(file, 'r');
  } catch {
    return '';
  }
  try {
    const bytes = Buffer.alloc(mostBytes);
    const length = readSync(descriptor, bytes, 0, bytes.length, from);
    took(length);
    return bytes.subarray(0, length).toString('utf8');
  } finally {
    closeSync(descriptor);
  }
}
