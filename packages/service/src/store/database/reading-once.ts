import type { Queryable, Statement } from './database.ts';

/**
 * Returns the same transaction for reads that are asked several at once, and many of them more than once: each is sent once, and one
 * after the other. For work that reads the same for many things and writes nothing; it changes no row that it gets.
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
