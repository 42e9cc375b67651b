import { closeSync, copyFileSync, fstatSync, openSync, readSync, statSync, truncateSync } from 'node:fs';

/** A log of this size is rotated. One older part of the log is kept. */
const largestLogBytes = 32 * 1024 * 1024;

/** Returns the size of the file in bytes; 0 if it does not exist. */
export function sizeOf(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0;
}

/**
 * Copies a full log to `{file}.1` and empties the log. Programs that write the log append to it, so they continue at the start of the
 * emptied file.
 */
export function rotateFullLog(file: string): void {
  if (sizeOf(file) < largestLogBytes) return;
  copyFileSync(file, `${file}.1`);
  truncateSync(file);
}

/**
 * Returns the last lines after the byte `from`, at most 4 KB. For a JSON log line, returns only the message. Other lines are
 * unchanged.
 */
export function readLogTail(file: string, from: number, lines = 12): string {
  let descriptor: number;
  try {
    descriptor = openSync(file, 'r');
  } catch {
    return '';
  }
  try {
    const { size } = fstatSync(descriptor);
    const start = Math.max(from <= size ? from : 0, size - 16_384);
    const bytes = Buffer.alloc(size - start);
    const read = readSync(descriptor, bytes, 0, bytes.length, start);
    const text = bytes.subarray(0, read).toString('utf8').trimEnd();
    return text === '' ? '' : text.split('\n').slice(-lines).map(readableLogLine).join('\n').slice(-4096);
  } finally {
    closeSync(descriptor);
  }
}

/** Returns the message of a log line of pino. Returns any other line unchanged. */
export function readableLogLine(line: string): string {
  if (!line.startsWith('{')) return line;
  try {
    const entry: { msg?: unknown; err?: { message?: unknown } } = JSON.parse(line);
    const cause = typeof entry.err?.message === 'string' ? entry.err.message : undefined;
    const message = typeof entry.msg === 'string' ? entry.msg : undefined;
    if (message === undefined && cause === undefined) return line;
    return cause !== undefined && cause !== message
      ? `${message ?? ''}${message ? ': ' : ''}${cause}`
      : (message ?? '');
  } catch {
    return line;
  }
}
