import { writeSync } from 'node:fs';

/** An object to which pino writes its lines. */
export interface LogDestination {
  write(line: string): void;
}

/** Reports that the log could not be written for a while. `dropped`: number of lines that are missing in the log. */
export interface LogGap {
  readonly error: string;
  readonly dropped: number;
}

/** Maximum number of bytes of lines that wait in memory while the log cannot be written. Further lines are dropped. */
const maxWaitingBytes = 1024 * 1024;
const retryMs = 100;

/**
 * Opens the destination of a program's log. Failures of the destination neither end the program nor make it wait. While the disk is full,
 * up to 1 MB of lines wait in memory. When the disk has space again, the waiting lines are written together with the next line, and
 * `onResumed` is called. Pino's own destination (sonic-boom 4.2) is not used. With it, a failed write would end the process, and
 * `flushSync` would repeat the write forever.
 */
export function openLogDestination(
  descriptor: number,
  onResumed: (gap: LogGap) => void,
  write: (descriptor: number, bytes: Buffer) => number = writeSync,
): LogDestination {
  const waiting: Buffer[] = [];
  let waitingBytes = 0;
  let dropped = 0;
  let failed: string | undefined;
  let retries = false;

  const writeWaiting = (): void => {
    for (let first = waiting[0]; first !== undefined; first = waiting[0]) {
      let written: number;
      try {
        written = write(descriptor, first);
      } catch (error) {
        const { code, message } = error as NodeJS.ErrnoException;
        // A full pipe is not a failure: the reader is only slow. A timer writes the waiting lines, because the program may never log
        // another line.
        if (code === 'EAGAIN') retryLater();
        else failed = message;
        return;
      }
      waitingBytes -= written;
      if (written === first.byteLength) waiting.shift();
      else waiting[0] = first.subarray(written);
    }
    if (failed === undefined && dropped === 0) return;
    const gap = { error: failed ?? 'the reader of the log is too slow', dropped };
    failed = undefined;
    dropped = 0;
    onResumed(gap);
  };
  const retryLater = (): void => {
    if (retries) return;
    retries = true;
    setTimeout(() => {
      retries = false;
      writeWaiting();
    }, retryMs).unref();
  };

  return {
    write(line) {
      if (waiting.length > 0) writeWaiting();
      const bytes = Buffer.from(line);
      if (waitingBytes + bytes.byteLength > maxWaitingBytes) dropped += 1;
      else {
        waiting.push(bytes);
        waitingBytes += bytes.byteLength;
      }
      writeWaiting();
    },
  };
}
