import type { Database } from '../database/database.ts';
import type { StoreLog } from '../database/log.ts';
import { defineStatement, text } from '../database/statement.ts';
import { readMigrations } from './migrate.ts';

/** Time that the database has for an answer. */
const patienceMs = 2_000;

const readApplied = defineStatement({
  name: 'read_applied_migrations',
  text: 'SELECT name FROM schema_migrations',
  row: { name: text() },
});

interface ReadinessDeps {
  readonly db: Database;
  readonly log: StoreLog;
  /** Returns why the embedded database does not run; null if it runs, or if this process has not started an embedded database. */
  databaseProblem(): string | null;
}

/**
 * Returns a function that checks whether the database answers and has all migrations of this code. The function returns a problem or
 * null. The function reads the names of the migration files only once. Only tests pass `read`.
 */
export function makeStoreCheck(deps: ReadinessDeps, read = readMigrations): () => Promise<string | null> {
  let expected: readonly string[] | undefined;
  return async () => {
    const problem = deps.databaseProblem();
    if (problem !== null) return problem;
    try {
      // If reading the files fails, for example because of too many open files, the next check tries again.
      expected ??= (await read()).map(({ name }) => name);
      const timeout = AbortSignal.timeout(patienceMs);
      const isLate = new Promise<never>((_, reject) => {
        timeout.addEventListener('abort', () =>
          reject(new Error(`the database did not answer within ${patienceMs} ms`)),
        );
      });
      const applied = await Promise.race([deps.db.query(readApplied), isLate]);
      const names = new Set(applied.map(({ name }) => name));
      const missing = expected.filter((name) => !names.has(name));
      return missing.length > 0 ? `migrations not applied: ${missing.join(', ')}` : null;
    } catch (error) {
      deps.log.warn({ err: error }, 'not ready');
      return 'the database does not answer';
    }
  };
}
