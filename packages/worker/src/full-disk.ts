import { delay } from '@runyard/system/backoff';
import type { Logger } from 'pino';

/** Time between two attempts to start the worker while a disk is full. */
const retryMs = 5_000;
/** Messages of the system about a full disk. Errors of Node and the output of programs that the worker starts contain these messages. */
const messages = /ENOSPC|EDQUOT|no space left on device|disk quota exceeded/i;

/** Returns whether an error, or one of its causes, means that a disk is full. */
export function isFullDisk(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return messages.test(`${'code' in error ? error.code : ''} ${error.message}`) || isFullDisk(error.cause);
}

interface Waiting {
  readonly log: Pick<Logger, 'warn' | 'info'>;
  /** Aborts the wait for disk space. */
  readonly signal: AbortSignal;
  readonly waitMs?: number;
}

/**
 * Starts a worker. If the start fails because a disk is full, tries again until the worker starts. Each failed attempt is logged as a
 * warning, because no run can start on this worker in the meantime.
 */
export async function startWhenThereIsRoom<W>(
  start: () => Promise<W>,
  { log, signal, waitMs = retryMs }: Waiting,
): Promise<W> {
  for (let tries = 1; ; tries += 1) {
    try {
      const worker = await start();
      if (tries > 1) log.info({ tries }, 'the disk has space again: the worker starts');
      return worker;
    } catch (error) {
      if (!isFullDisk(error)) throw error;
      const { message } = error as Error;
      log.warn(
        { error: message, next_in_ms: waitMs },
        'a disk is full, so the worker waits; free some space and it starts',
      );
      await delay(waitMs, signal);
    }
  }
}
