import type pg from 'pg';
import { expect, test } from 'vitest';
import { closeAtEnd } from '../../../../../../test/support/close-at-end.ts';
import { createTestDatabase } from '../../../../test/database.ts';
import { inTransaction, withinTransaction } from './transaction.ts';

const database = closeAtEnd(await createTestDatabase());
await database.db.query('CREATE TABLE counters (name text PRIMARY KEY, value bigint NOT NULL)');

const read = { name: 'test_read_counter', text: 'SELECT value FROM counters WHERE name = $1 FOR UPDATE' };
const readAll = { name: 'test_read_counters', text: 'SELECT name FROM counters ORDER BY name' };
const insert = { name: 'test_insert_counter', text: 'INSERT INTO counters VALUES ($1, $2)' };
const names = async () => (await database.db.query<{ name: string }>(readAll)).map(({ name }) => name);

/** Runs `work` in a transaction. Returns the result, and the order in which the connection sent the statements and got the answers. */
async function observed<T>(
  work: Parameters<typeof inTransaction<T>>[1],
  fails: (text: string) => boolean = () => false,
) {
  const client = await database.db.pool.connect();
  const steps: string[] = [];
  const query = async (sent: string | pg.QueryConfig) => {
    const text = typeof sent === 'string' ? sent : sent.text;
    const [word = ''] = text.split(' ');
    steps.push(`${word} sent`);
    try {
      if (fails(text)) throw new Error(`${word} fails`);
      return await client.query(sent as pg.QueryConfig);
    } finally {
      steps.push(`${word} answered`);
    }
  };
  const tell = () => {};
  const result = await inTransaction({ query } as unknown as pg.PoolClient, work, tell).catch(
    (error: Error) => error.message,
  );
  client.release();
  return { steps, result };
}

test('a transaction sends concurrent reads together, and the statements of `atCommit` together with COMMIT', async () => {
  const { steps, result } = await observed(async (tx) => {
    await Promise.all([tx.query(read, ['first']), tx.query(readAll)]);
    tx.atCommit(insert, ['first', 1]);
    tx.atCommit(insert, ['second', 1]);
    return 'done';
  });
  const together = (...words: string[]) =>
    ['sent', 'answered'].flatMap((step) => words.map((word) => `${word} ${step}`));
  expect(steps).toEqual(
    [['BEGIN'], ['SELECT', 'SELECT'], ['INSERT', 'INSERT', 'COMMIT']].flatMap((words) => together(...words)),
  );
  expect(result).toBe('done');
  expect(await names()).toEqual(['first', 'second']);
});

test.each([
  ['a write', insert, ['w', 1]],
  ['a read', read, ['first']],
  ['a statement without a name', 'SELECT 1', []],
])(
  'a transaction waits for the answer to BEGIN before it sends %s, and sends later statements in their order',
  async (_, statement, values) => {
    const { steps } = await observed(async (tx) => {
      await Promise.all([tx.query(statement, values), tx.query(readAll)]);
      throw new Error('undo');
    });
    const [word = ''] = (typeof statement === 'string' ? statement : statement.text).split(' ');
    expect(steps.slice(0, 4)).toEqual(['BEGIN sent', 'BEGIN answered', `${word} sent`, 'SELECT sent']);
  },
);

test('a transaction sends no statement if BEGIN fails', async () => {
  const before = await names();
  const { steps, result } = await observed(
    async (tx) => {
      await tx.query(readAll);
      tx.atCommit(insert, ['later', 1]);
      await tx.query(insert, ['lost', 1]);
    },
    (text) => text.startsWith('BEGIN'),
  );
  expect(result).toBe('BEGIN fails');
  expect(steps.filter((step) => step.endsWith('sent'))).toEqual(['BEGIN sent', 'ROLLBACK sent']);
  expect(await names()).toEqual(before);
});

test('a transaction sends neither BEGIN nor COMMIT if its work sends no statement', async () => {
  expect(await observed(async () => 'nothing')).toEqual({ steps: [], result: 'nothing' });
});

test('a transaction rolls back completely if a statement of `atCommit` fails, and throws the error of that statement', async () => {
  const failing = database.db.transaction(async (tx) => {
    await tx.query(insert, ['kept with the others', 1]);
    tx.atCommit(insert, ['twice', 1]);
    tx.atCommit(insert, ['twice', 2]);
    tx.atCommit(insert, ['after it', 1]);
  });
  await expect(failing).rejects.toMatchObject({ code: '23505' });
  expect(await names()).toEqual(['first', 'second']);
});

test('`withinTransaction` sends the statements of `atCommit` when its own work ends, not at the commit', async () => {
  await database.db.transaction(async (tx) => {
    await withinTransaction(tx, async (part) => part.atCommit(insert, ['of a part', 1]));
    expect(await tx.query(readAll)).toContainEqual({ name: 'of a part' });
  });
});

test('a statement for which `work` does not wait is not sent after the rollback, where it would commit by itself', async () => {
  let late: Promise<unknown> | undefined;
  const { result } = await observed(async (tx) => {
    late = tx.query(insert, ['late', 1]).catch((error: Error) => error.message);
    throw new Error('work fails');
  });
  expect([result, await late]).toEqual(['work fails', 'the transaction has ended']);
  expect(await names()).not.toContain('late');
});
