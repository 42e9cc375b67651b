import type { Queryable, Statement } from './database.ts';

/** Returns the same transaction for work that asks it several things at once: its connection runs one statement at a time. */
export function oneByOne(tx: Queryable): Queryable {
  let last: Promise<unknown> = Promise.resolve();
  return {
    query: <Row extends object>(statement: Statement | string, values?: readonly unknown[]): Promise<Row[]> => {
      const next = last.then(() => tx.query<Row>(statement, values));
      last = next.catch(() => undefined);
      return next;
    },
  };
}
