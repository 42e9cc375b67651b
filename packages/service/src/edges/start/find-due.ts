import type { Database, Statement } from '../../platform/store/database/database.ts';

/** Returns the places in a list of loops that have work now. */
export type FindDue = () => Promise<readonly number[]>;

/**
 * Makes the one statement that finds out which loops have work. `due` has the statements of each loop (`Loop.due`). It costs about as
 * much as one of them, because the conditions are answered by indexes that are empty while nothing is due.
 */
export function makeFindDue(db: Pick<Database, 'query'>, due: readonly (readonly Statement[])[]): FindDue {
  if (due.length === 0) return async () => [];
  const parts = due.map(
    (statements, place) =>
      `SELECT ${place} AS place WHERE ${statements.map(({ text }) => `EXISTS (${text})`).join(' OR ')}`,
  );
  const statement = { name: 'find_due_loops', text: parts.join('\nUNION ALL ') };
  return async () => (await db.query<{ place: number }>(statement)).map(({ place }) => place);
}
