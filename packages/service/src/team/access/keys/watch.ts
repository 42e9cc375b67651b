/** Watches the keys with which open connections were authenticated. */
import type { Logger } from 'pino';
import type { Database } from '../../../platform/store/database/database.ts';
import { workForAll } from '../../../platform/store/database/shares.ts';
import { defineStatement, float, nullable, text } from '../../../platform/store/database/statement.ts';
import { isValidKeyIn, keysChannel, mayConnectToPool, mayRunWorkersIn } from './key.ts';

/** A key, and the team in which its owner acts with the key. */
export interface KeyInTeam {
  readonly keyId: string;
  readonly teamId: string;
  /** The team's pool to which a worker connects with the key; absent: no pool. */
  readonly pool?: string | undefined;
}

/** Purpose of the connection. For a worker, the role of the key's person must allow workers. */
export type ConnectionUse = 'stream' | 'worker';

/** Notifies open connections when their key ends. */
export interface KeyWatch {
  /**
   * Calls `onEnd` once, within a second after the key is deleted or expires, or after the key's person leaves the team. Also calls `onEnd`
   * if the key had already ended before this call. For a worker, also calls `onEnd` when the person becomes a viewer, or when the key may
   * not connect to the pool any more. Returns the function that stops watching.
   */
  watch(key: KeyInTeam, use: ConnectionUse, onEnd: () => void): () => void;
  close(): void;
}

const readEnds = defineStatement({
  name: 'read_ends_of_keys',
  text: `
    SELECT w.key_id || ' ' || w.team_id || ' ' || w.use || ' ' || coalesce(w.pool, '') AS name, (extract(epoch FROM k.expires_at - clock_timestamp()) * 1000)::float8 AS "remainingMs"
    FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::text[]) AS w (key_id, team_id, use, pool) JOIN api_keys k ON k.id = w.key_id
    WHERE ${isValidKeyIn('k', 'w.team_id')} AND (w.use <> 'worker' OR ${mayRunWorkersIn('k', 'w.team_id')})
      AND (w.pool IS NULL OR ${mayConnectToPool('k', 'w.team_id', 'w.pool')})`,
  row: { name: text(), remainingMs: nullable(float) },
});

interface Watched {
  readonly key: KeyInTeam;
  readonly use: ConnectionUse;
  readonly callbacks: Set<() => void>;
  /**
   * Time at which the key expires, on the clock of `performance.now()`; infinite if the key never expires, or if its row was not read yet.
   */
  endsAt: number;
}

/**
 * Starts to watch keys in this process. A deletion arrives by NOTIFY. The check every `checkEveryMs` milliseconds is for a process whose
 * listening connection was lost without an error.
 */
export async function openKeyWatch(db: Database, log: Logger, checkEveryMs = 5_000): Promise<KeyWatch> {
  const watched = new Map<string, Watched>();
  let timer: NodeJS.Timeout | undefined;
  let checkedAt = performance.now();
  let isClosed = false;
  let isChecking = false;
  let isAskedAgain = false;

  const end = (name: string) => {
    const callbacks = watched.get(name)?.callbacks ?? [];
    watched.delete(name);
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
    // Compare with the clock of the process, so that keys also expire while the database does not answer.
    for (const [name, { endsAt }] of [...watched]) if (endsAt <= performance.now()) end(name);
    if (performance.now() - checkedAt >= checkEveryMs) check();
    schedule();
  };

  const compare = async () => {
    const asked = new Map(watched);
    if (asked.size === 0) return;
    const entries = [...asked.values()];
    const rows = await db.query(readEnds, [
      entries.map(({ key }) => key.keyId),
      entries.map(({ key }) => key.teamId),
      entries.map(({ use }) => use),
      entries.map(({ key }) => key.pool ?? null),
    ]);
    const remaining = new Map(rows.map((row) => [row.name, row.remainingMs ?? Number.POSITIVE_INFINITY]));
    for (const [name, entry] of asked) {
      if (watched.get(name) !== entry) continue;
      const remainingMs = remaining.get(name);
      if (remainingMs === undefined) end(name);
      else entry.endsAt = performance.now() + remainingMs;
    }
  };

  const check = () => {
    checkedAt = performance.now();
    isAskedAgain = true;
    if (isChecking) return;
    isChecking = true;
    void workForAll(async () => {
      while (isAskedAgain && !isClosed) {
        isAskedAgain = false;
        await compare().catch((error: unknown) =>
          log.warn({ err: error }, 'checking the keys of open connections failed; the next check tries again'),
        );
      }
      isChecking = false;
      schedule();
    });
  };

  const stopListening = await db.listen(keysChannel, check, check);
  return {
    watch: ({ keyId, teamId, pool }, use, onEnd) => {
      const name = `${keyId} ${teamId} ${use} ${pool ?? ''}`;
      const entry = watched.get(name) ?? {
        key: { keyId, teamId, pool },
        use,
        callbacks: new Set(),
        endsAt: Number.POSITIVE_INFINITY,
      };
      entry.callbacks.add(onEnd);
      watched.set(name, entry);
      // Check the key at once, because it may have been deleted just after the caller authenticated it.
      check();
      return () => {
        entry.callbacks.delete(onEnd);
        if (entry.callbacks.size === 0 && watched.get(name) === entry) watched.delete(name);
      };
    },
    close: () => {
      isClosed = true;
      clearTimeout(timer);
      stopListening();
    },
  };
}
