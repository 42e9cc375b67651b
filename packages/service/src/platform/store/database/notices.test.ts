import { setTimeout as delay } from 'node:timers/promises';
import { beforeEach, expect, test } from 'vitest';
import { closeAtEnd } from '../../../../../../test/support/close-at-end.ts';
import { createTestDatabase, type TestDatabase } from '../../../../test/database.ts';
import type { Database } from './database.ts';
import { silentLog } from './log.ts';
import { makeNoticeSender } from './notices.ts';
import { openDatabase } from './open-database.ts';

let database: TestDatabase;
/** The database as another process uses it. */
let other: Database;

beforeEach(async () => {
  database = closeAtEnd(await createTestDatabase());
  other = closeAtEnd(
    await openDatabase({ address: { connectionString: database.url }, maxConnections: 2, log: silentLog }),
  );
});

/** Returns the list to which each notice on the channel `runyard_test` that `db` receives is added. */
async function hear(db: Database): Promise<string[]> {
  const heard: string[] = [];
  await db.listen('runyard_test', (payload) => heard.push(payload));
  return heard;
}

const tell = (payload: string) => `SELECT '${payload}' AS runyard_test`;

test('a column named after a channel notifies the own process when the statement has returned, and other processes soon after', async () => {
  const [own, foreign] = [await hear(database.db), await hear(other)];
  await database.db.query(`${tell('a')} UNION ALL ${tell('b')} UNION ALL SELECT NULL`);
  expect(own).toEqual(['a', 'b']);
  await expect.poll(() => foreign).toEqual(['a', 'b']);
  expect(own).toEqual(['a', 'b']);
});

test('the notices of a transaction are sent after its commit, and those of a rollback are not sent', async () => {
  const own = await hear(database.db);
  await database.db.transaction(async (tx) => {
    await tx.query(tell('early'));
    tx.atCommit({ name: 'tell_at_commit', text: tell('late') });
    await tx.query(tell('early'));
    expect(own).toEqual([]);
  });
  expect(own).toEqual(['early', 'late']);
  const failing = database.db.transaction(async (tx) => {
    await tx.query(tell('never'));
    throw new Error('undone');
  });
  await expect(failing).rejects.toThrow('undone');
  expect(own).toEqual(['early', 'late']);
});

test('a process that is alone sends no notice to others, and sends again when another process has started', async () => {
  const [own, foreign] = [await hear(database.db), await hear(other)];
  database.db.setAlone(true);
  await database.db.query(tell('kept'));
  database.db.setAlone(false);
  await database.db.query(tell('sent'));
  await expect.poll(() => foreign).toEqual(['sent']);
  expect(own).toEqual(['kept', 'sent']);
});

test('a database that closes has sent its notices', async () => {
  const foreign = await hear(database.db);
  const closing = await openDatabase({
    address: { connectionString: database.url },
    maxConnections: 1,
    log: silentLog,
  });
  for (const payload of ['first', 'last']) await closing.query(tell(payload));
  await closing.close();
  await expect.poll(() => foreign).toEqual(['first', 'last']);
});

test('notices that arrive within five milliseconds or during a batch are sent in one batch, each once', async () => {
  const batches: (readonly string[])[] = [];
  const times: number[] = [];
  const slow = Promise.withResolvers<void>();
  const sender = makeNoticeSender(async (_channels, payloads) => {
    batches.push(payloads);
    times.push(performance.now());
    if (batches.length === 1) await slow.promise;
  });
  sender.send(['c first']);
  for (const payload of ['a', 'b', 'a']) sender.send([`c ${payload}`]);
  await delay(20);
  expect(batches).toEqual([['first']]);
  slow.resolve();
  await expect.poll(() => batches).toEqual([['first'], ['a', 'b']]);
  sender.send(['c soon']);
  await sender.flush();
  expect(batches).toEqual([['first'], ['a', 'b'], ['soon']]);
  expect(Number(times[2]) - Number(times[1])).toBeGreaterThan(3);
});
