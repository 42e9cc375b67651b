/** Watches the keys behind open connections. */
import type { Logger } from 'pino';
import type { Database } from '../../store/database/database.ts';
import { defineStatement, float, nullable, uuid } from '../../store/database/statement.ts';
import { keysChannel } from './directory.ts';
import { isValidKey } from './valid-key.ts';

/** Notifies open connections of the end of their key. */
export interface KeyWatch {
  /**
   * Calls `onEnd` once, within a second after the key was deleted or expired, also if that happened before this call.
   * Returns the function that stops watching.
   */
  watch(keyId: string, onEnd: () => void): () => void;
  close(): void;
}

/** A deletion arrives by NOTIFY. The check is for a process whose listening connection died without a sign. */
const checkEveryMs = 5_000;

const readEnds = defineStatement({
  name: 'read_ends_of_keys',
  text: `
    SELECT k.id, (extract(epoch FROM k.expires_at - clock_timestamp()) * 1000)::float8 AS "remainingMs"
    FROM api_keys k WHERE k.id = ANY($1::uuid[]) AND ${isValidKey('k')}`,
  row: { id: uuid, remainingMs: nullable(float) },
});

interface Watched {
  readonly callbacks: Set<() => void>;
  /** As `performance.now()`; infinite: never, or not read yet. */
  endsAt: number;
}

/** Starts to watch keys in this process. */
export async function openKeyWatch(db: Database, log: Logger): Promise<KeyWatch> {
  const watched = new Map<string, Watched>();
  let timer: NodeJS.Timeout | undefined;
  let checkedAt = performance.now();
  let isClosed = false;
  let isChecking = false;
  let isAskedAgain = false;

  const end = (keyId: string) => {
    const callbacks = watched.get(keyId)?.callbacks ?? [];
    watched.delete(keyId);
    for (const callback of [...callbacks]) callback();
  };

  const schedule = () => {
    clearTimeout(timer);
    if (isClosed || watched.size === 0) return;
    let at = checkedAt + checkEveryMs;
    for (const { endsAt } of watched.values()) at = Math.min(at, endsAt);
    timer = setTimeout(tick, Math.max(0, at - performance.now()));
    timer.unref();
  };

  const tick = () => {
    // Uses the clock of the process, so that keys expire also while the database does not answer.
    for (const [keyId, { endsAt }] of [...watched]) if (endsAt <= performance.now()) end(keyId);
    if (performance.now() - checkedAt >= checkEveryMs) check();
    schedule();
  };

  const compare = async () => {
    const asked = new Map(watched);
    if (asked.size === 0) return;
    const rows = await db.query(readEnds, [[...asked.keys()]]);
    const remaining = new Map(rows.map((row) => [row.id, row.remainingMs ?? Number.POSITIVE_INFINITY]));
    for (const [keyId, entry] of asked) {
      if (watched.get(keyId) !== entry) continue;
      const remainingMs = remaining.get(keyId);
      if (remainingMs === undefined) end(keyId);
      else entry.endsAt = performance.now() + remainingMs;
    }
  };

  const check = () => {
    checkedAt = performance.now();
    isAskedAgain = true;
    if (isChecking) return;
    isChecking = true;
    void (async () => {
      while (isAskedAgain && !isClosed) {
        isAskedAgain = false;
        await compare().catch((error: unknown) =>
          log.warn({ err: error }, 'checking the keys of open connections failed; the next check tries again'),
        );
      }
      isChecking = false;
      schedule();
    })();
  };

  const stopListening = await db.listen(keysChannel, check, check);
  return {
    watch: (keyId, onEnd) => {
      const entry = watched.get(keyId) ?? { callbacks: new Set(), endsAt: Number.POSITIVE_INFINITY };
      entry.callbacks.add(onEnd);
      watched.set(keyId, entry);
      // The caller may have authenticated it just before its deletion.
      check();
      return () => {
        entry.callbacks.delete(onEnd);
        if (entry.callbacks.size === 0 && watched.get(keyId) === entry) watched.delete(keyId);
      };
    },
    close: () => {
      isClosed = true;
      clearTimeout(timer);
      stopListening();
    },
  };
}
