import type pg from 'pg';
import { collectNotices, type NoticeSet } from './notices.ts';
import type { Statement } from './statement.ts';
import { asUnavailable } from './unavailable.ts';

/**
 * Sends a statement and returns its rows. Adds the notices of the result to `notices`: the caller sends them after the commit. Throws
 * `StoreUnavailable` if the connection is lost or the disk is full.
 */
export async function run<Row>(
  client: pg.ClientBase,
  statement: Statement | string,
  values: readonly unknown[] = [],
  notices: NoticeSet,
): Promise<Row[]> {
  const query = typeof statement === 'string' ? { text: statement } : { name: statement.name, text: statement.text };
  const result = await send<Row & object>(client, { ...query, values: [...values] });
  collectNotices(result, notices);
  return result.rows;
}

/** Sends a query. Throws as `run` does. */
export async function send<Row extends pg.QueryResultRow>(
  client: pg.ClientBase,
  query: string | pg.QueryConfig,
): Promise<pg.QueryResult<Row>> {
  try {
    return await client.query<Row>(query);
  } catch (error) {
    throw asUnavailable(error, 'database');
  }
}
