/**
 * The pause of an imported installation. The source of the copy may still run, so the copy starts and delivers nothing until an operator
 * ends the pause.
 */
import { delay } from '@runyard/system/backoff';
import type { Logger } from 'pino';
import { readPausedSince } from '../../platform/installation/installation.ts';
import type { Database } from '../../platform/store/database/database.ts';

export interface Pause {
  /** RFC 3339; null: not paused. */
  since: string | null;
}

/** Returns the text about the pause for `/readyz`; null if there is no pause. */
export const describePause = ({ since }: Pause): string | null =>
  since === null
    ? null
    : `paused since ${since.slice(0, 19)}Z, because it was imported: no queued run, schedule or delivery starts. Run bin/runyard resume when the source does not run any more`;

const pollMs = 1_000;

/** Calls `start` when the pause ends, or at once if there is no pause. Returns the function that stops the wait. */
export async function afterPause(
  pause: Pause,
  { db, log, pollEveryMs = pollMs }: { readonly db: Database; readonly log: Logger; readonly pollEveryMs?: number },
  start: () => Promise<void>,
): Promise<() => Promise<void>> {
  if (pause.since === null) {
    await start();
    return async () => {};
  }
  log.warn(describePause(pause));
  const stopping = new AbortController();
  const waiting = (async () => {
    while (pause.since !== null) {
      await delay(pollEveryMs, stopping.signal);
      // If the database does not answer, the pause continues.
      pause.since = await readPausedSince(db).catch(() => pause.since);
    }
    log.info('the pause has ended');
    await start();
  })().catch((error: unknown) => {
    if (stopping.signal.aborted) return;
    log.fatal({ err: error }, 'the work of this service could not start after the pause; the process ends');
    // No code handles this rejection, so the process ends. After the restart of the process, there is no pause.
    throw error;
  });
  return async () => {
    stopping.abort();
    await waiting;
  };
}
