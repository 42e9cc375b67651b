/**
 * Tests that each call of the published client creates one run. The client repeats a failed request by itself, but sends no
 * Idempotency-Key.
 */
import OzAPI from 'oz-agent-sdk';
import pg from 'pg';
import { afterAll, beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { createTestDatabase } from '../packages/service/test/database.ts';
import { openCuttingProxy } from './fakes/cutting-proxy.ts';
import { closeAtEnd } from './support/close-at-end.ts';
import { type OneService, startService } from './support/service-process.ts';

let services: OneService[] = [];
const key = 'ryk_test-of-repeats-0123456789-0123456789';

const database = closeAtEnd(await createTestDatabase());
for (let i = 0; i < 2; i += 1) services.push(await startService({ databaseUrl: database.url, key }));
const proxy = await openCuttingProxy(services[0]?.origin ?? '');
const client: OzAPI = new OzAPI({ apiKey: key, baseURL: `${proxy.url}/api/v1`, maxRetries: 5 });
afterAll(async () => {
  await proxy?.close();
  for (const service of services) await service.stop();
  services = [];
});

let prompt = '';
beforeEach(({ task }) => {
  prompt = task.name;
});

const created = async () =>
  (await database.db.query<{ id: string }>('SELECT run_id AS id FROM run_requests WHERE prompt = $1', [prompt])).map(
    ({ id }) => id,
  );

test('the client creates one run if the first answer is lost', async () => {
  proxy.loseAnswers(1);
  const { run_id } = await client.agent.run({ prompt });
  expect(proxy.lost()).toBe(1);
  expect(await created()).toEqual([run_id]);
});

test('the client creates one run if three answers are lost and each repeated request reaches another process', async () => {
  const before = proxy.lost();
  proxy.loseAnswers(3);
  const asked = client.agent.run({ prompt });
  for (let lost = 1; lost <= 3; lost += 1) {
    await vi.waitUntil(() => proxy.lost() === before + lost, { timeout: 60_000, interval: 5 });
    proxy.leadTo(services[lost % 2]?.origin ?? '');
  }
  const { run_id } = await asked;
  expect(await created()).toEqual([run_id]);
});

test('three calls of the client with the same prompt create three runs', async () => {
  const made = [];
  for (let i = 0; i < 3; i += 1) made.push((await client.agent.run({ prompt })).run_id);
  expect((await created()).sort()).toEqual(made.sort());
  expect(new Set(made).size).toBe(3);
});

test('the client creates one run if the service process is killed while it waits for the database', async () => {
  const blocker = new pg.Client({ connectionString: database.url });
  await blocker.connect();
  onTestFinished(() => blocker.end());
  await blocker.query('BEGIN; LOCK TABLE client_answers IN ACCESS EXCLUSIVE MODE');
  const killed = services[1];
  proxy.cut();
  proxy.leadTo(killed?.origin ?? '');
  const asked = client.agent.run({ prompt });
  // Ignore a failure here: the code below awaits this promise, unless the wait for the lock fails before that.
  asked.catch(() => undefined);
  const isWaiting = async () => {
    // Search for a waiting lock. A search for the text of the statement would not work, because pg_stat_activity shows only its first
    // 1,024 bytes.
    const waiting = await blocker.query(`SELECT FROM pg_locks JOIN pg_database d ON d.oid = database
      WHERE NOT granted AND relation = 'client_answers'::regclass AND datname = current_database()`);
    return waiting.rows.length > 0;
  };
  await vi.waitUntil(isWaiting, { timeout: 60_000 });
  proxy.leadTo(services[0]?.origin ?? '');
  await killed?.kill();
  await blocker.query('COMMIT');
  await blocker.end();
  const { run_id } = await asked;
  expect(await created()).toEqual([run_id]);
});
