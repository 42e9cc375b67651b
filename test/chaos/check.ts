/** The form of a check of chaos tests, and the test of a check: planted faults that it must find. */
import type { Database, Queryable } from '../../packages/service/src/platform/store/database/database.ts';
import type { Seen } from './load.ts';

export interface Check {
  /** The promise. */
  readonly promise: string;
  /** Returns the number of checked rows or answers, and a line for each fault. */
  find(db: Queryable, seen: Seen): Promise<{ readonly count: number; readonly faults: readonly string[] }>;
  readonly plants: readonly string[];
}

export const rowsOf = async <Row extends object>(db: Queryable, text: string, ...values: readonly unknown[]) =>
  await db.query<Row>(text, values);

/**
 * Makes a check from a query. The query `text` returns one row for each object that it checks: `is_fault`, and `line` with a
 * description of the object.
 */
export const ofRows = (
  promise: string,
  text: string,
  plants: readonly string[],
  values: (seen: Seen) => unknown[] = () => [],
): Check => ({
  promise,
  find: async (db, seen) => {
    const rows = await rowsOf<{ is_fault: boolean; line: string }>(db, text, ...values(seen));
    return { count: rows.length, faults: rows.filter(({ is_fault }) => is_fault).map(({ line }) => line) };
  },
  plants,
});

/** Return SQL that selects the first or the last run that matches the condition. */
export const firstRun = (where: string) => `(SELECT id FROM runs WHERE ${where} ORDER BY id LIMIT 1)`;
export const lastRun = (where: string) => `(SELECT id FROM runs WHERE ${where} ORDER BY id DESC LIMIT 1)`;

class RolledBack extends Error {}

/** Returns the planted faults that the check does not find. Does not change the database. */
export async function findBlindSpots(db: Database, check: Check, seen: Seen): Promise<string[]> {
  const before = (await check.find(db, seen)).faults.length;
  const unseen: string[] = [];
  for (const plant of check.plants) {
    const work = db.transaction(async (tx) => {
      await tx.query(plant);
      if ((await check.find(tx, seen)).faults.length <= before) unseen.push(plant);
      throw new RolledBack();
    });
    await work.catch((error) => {
      if (!(error instanceof RolledBack)) throw error;
    });
  }
  return unseen;
}
