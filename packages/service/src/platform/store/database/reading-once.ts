import type { Queryable } from './database.ts';
import type { Statement } from './statement.ts';

/**
 * Returns a `Queryable` that reads in the transaction `tx` and sends equal statements with equal values only once. It sends one
 * statement after the other. Use it for concurrent work that reads the same rows for many objects and writes nothing.
 */
export function readingOnce(tx: Queryable): Queryable {
  const answers = new Map<string, Promise<object[]>>();
  let last: Promise<unknown> = Promise.resolve();
  return {
    query: <Row extends object>(statement: Statement | string, values: readonly unknown[] = []): Promise<Row[]> => {
      const key = JSON.stringify([typeof statement === 'string' ? statement : statement.name, values]);
      const known = answers.get(key);
      if (known) return known as Promise<Row[]>;
      const answer = last.then(() => tx.query<Row>(statement, values));
      last = answer.catch(() => undefined);
      answers.set(key, answer);
      return answer;
    },
  };
}
