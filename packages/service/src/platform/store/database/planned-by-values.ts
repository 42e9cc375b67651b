import type { Database, Queryable } from './database.ts';

/**
 * Calls `work` in a transaction in which PostgreSQL plans each statement for the values of this call, with the server's default costs.
 * The statements that read lists need this, because their best plan depends on how many rows match a value. `settings`: further `SET
 * LOCAL` statements.
 */
export async function plannedByValues<T>(db: Database, work: (tx: Queryable) => Promise<T>, settings = ''): Promise<T> {
  return await db.transaction(async (tx) => {
    await tx.query(`SET LOCAL plan_cache_mode = auto; SET LOCAL random_page_cost TO DEFAULT; ${settings}`);
    return await work(tx);
  });
}
