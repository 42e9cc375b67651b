import { writeSync } from 'node:fs';

/** Destination of pino's lines. */
export interface LogDestination {
  write(line: string): void;
}

/** Lines that are missing in a log, because the log could not be written for a while. */
export interface LogGap {
  readonly error: string;
  readonly dropped: number;
}

/** Most bytes that wait in memory while they cannot be written. Further lines are dropped. */
const maxWaitingBytes = 1024 * 1024;
const retryMs = 100;

/**
 * Opens the destination of a program's log. Failures of the destination neither end the program nor make it wait. While the disk is full,
 * up to 1 MB of lines wait in memory. As soon as there is space, they are written together with the next line, and `onResumed` is called.
 * Pino's own destination is not used, because it ends the process at such an error, and its `flushSync` repeats the write forever
 * (sonic-boom 4.2).
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
        // A pipe with a slow reader is not a failure. The waiting lines are written from a timer, because a next line may never come.
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
