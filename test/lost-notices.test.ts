/**
 * Tests that a service process finds due work although the database notice about it was lost, and although the tables of other kinds
 * of work are locked.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { newRawKey } from '../packages/service/src/team/access/keys/key.ts';
import { createTestDatabase, type TestDatabase } from '../packages/service/test/database.ts';
import { testSchedules } from '../packages/service/test/schedules.ts';
import type { TestService } from '../packages/service/test/service.ts';
import { type OneService, startService } from './support/service-process.ts';
import { eventually } from './support/system.ts';

let database: TestDatabase;
let service: OneService;
let teamId: string;
const key = newRawKey();

beforeAll(async () => {
  database = await createTestDatabase();
  service = await startService({ databaseUrl: database.url, key });
  const [team] = await database.db.query<{ id: string }>('SELECT id FROM teams');
  teamId = team?.id ?? '';
}, 180_000);
afterAll(async () => {
  await service?.stop();
  await database.drop();
});

/** Inserts a schedule that is due in half a second, and waits until it has fired. Returns how often it fired too early. */
async function fireOne(): Promise<number> {
  const { insert } = testSchedules({ deps: database } as unknown as TestService);
  const [id] = await insert({ teamId, count: 1, dueSeconds: -0.5 });
  const fired = () =>
    database.db.query<{ early: boolean }>('SELECT fired_at < due_at AS early FROM starts WHERE schedule_id = $1', [id]);
  await eventually('the fire of the schedule', async () => (await fired()).length > 0);
  return (await fired()).filter(({ early }) => early).length;
}

test('the service delivers an event whose notice was lost', async () => {
  const answer = await fetch(`${service.origin}/api/v1/event-subscriptions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ url: 'https://hooks.invalid/runs', events: ['run.created'] }),
  });
  expect(answer.status).toBe(201);
  const { id } = (await answer.json()) as { id: string };
  // Without NOTIFY.
  await database.db.query(
    `INSERT INTO event_deliveries (subscription_id, event, data) VALUES ($1, 'run.created', '{}')`,
    [id],
  );
  const attempted = () =>
    database.db.query('SELECT FROM event_deliveries WHERE subscription_id = $1 AND attempts > 0', [id]);
  await eventually('the first attempt', async () => (await attempted()).length > 0);
});

test('the service fires a schedule that was inserted without a notice, and does not fire it too early', async () => {
  expect(await fireOne()).toBe(0);
});

test('the service fires schedules although the statement that finds the due work of all loops waits for a lock on another table', async () => {
  const early = await database.db.transaction(async (tx) => {
    await tx.query('LOCK TABLE factory_sources IN ACCESS EXCLUSIVE MODE');
    return await fireOne();
  });
  expect(early).toBe(0);
});
