import { randomUUIDv7 } from 'node:crypto';
import { afterEach, describe, expect, test } from 'vitest';
import { insertTeam } from '../../../test/executions.ts';
import { openTestSubscriptions } from '../../../test/subscriptions.ts';
import type { Queryable } from '../../platform/store/database/database.ts';
import { cancelRun } from '../executions/cancel/cancel.ts';
import { blockRun } from '../executions/idle/debug-window.ts';
import { claim, resume, start } from '../executions/transitions/transitions.ts';
import { finishRun } from '../harness-support/finish/finish-run.ts';
import { acceptFollowup } from '../runs/follow-ups/accept.ts';

const subscriptions = await openTestSubscriptions();
afterEach(() => subscriptions.database.db.query("UPDATE executions SET phase = 'ended'"));

const request = { request_id: 'r1', kind: 'question', title: 'Which one?', asked_at: '2026-01-02T03:04:05Z' } as const;
const block = (db: Queryable, target: { runId: string; executionId: string }) =>
  blockRun(subscriptions.deps, db, { ...target, request, idleSeconds: null });

/** Creates a run and brings it to INPROGRESS. */
async function startRun(overrides = {}) {
  const runId = await subscriptions.newRun(overrides);
  const assignment = await subscriptions.assign(await subscriptions.newConnection());
  if (!assignment) throw new Error('nothing was assigned');
  const target = { runId, executionId: assignment.executionId };
  const { db } = subscriptions.database;
  expect(await claim(db, { ...target, args: { assignment_id: assignment.assignmentId, lease_seconds: 90 } })).toBe(
    true,
  );
  expect(await start(db, target)).toBe(true);
  return target;
}

const told = async () => (await subscriptions.deliveries()).map(({ event, data }) => [event, data.state]);

test('every change of a run that subscribers can choose enqueues a delivery in the same transaction, with numbers in order', async () => {
  await subscriptions.subscribe();
  const { db } = subscriptions.database;
  const target = await startRun();
  await block(db, target);
  await resume(db, target);
  await finishRun(subscriptions.deps, db, { ...target, report: { success: true, summary: 'done' } });
  expect(await told()).toEqual([
    ['run.created', 'QUEUED'],
    ['run.started', 'INPROGRESS'],
    ['run.blocked', 'BLOCKED'],
    ['run.started', 'INPROGRESS'],
    ['run.ended', 'SUCCEEDED'],
  ]);
  const deliveries = await subscriptions.deliveries();
  const events = await db.query<{ seq: number; state: string }>(
    'SELECT seq, state FROM run_events WHERE run_id = $1 AND state IS NOT NULL ORDER BY seq',
    [target.runId],
  );
  for (const { data } of deliveries) expect(events).toContainEqual({ seq: data.seq, state: data.state });
  expect(Object.keys(deliveries[0]?.data ?? {}).sort()).toEqual(['conversation_id', 'run_id', 'seq', 'state']);
});

test.each([
  ['FAILED', { success: false, summary: 'no' }],
  ['ERROR', { success: false, summary: 'no', error: { code: 'agent_process_failed', message: 'x' } }],
] as const)('a run that ends as %s enqueues run.ended', async (state, report) => {
  await subscriptions.subscribe({ events: ['run.ended'] });
  const target = await startRun();
  await finishRun(subscriptions.deps, subscriptions.database.db, { ...target, report });
  expect(await told()).toEqual([['run.ended', state]]);
});

test('the cancel of a run that never started enqueues one delivery', async () => {
  await subscriptions.subscribe({ events: ['run.ended'] });
  const runId = await subscriptions.newRun();
  const outcomes = await Promise.all([1, 2, 3].map(() => cancelRun(subscriptions.deps, runId)));
  expect(outcomes.filter((outcome) => outcome === 'cancelled')).toHaveLength(1);
  expect(await told()).toEqual([['run.ended', 'CANCELLED']]);
});

test('in the debug window of a failed setup, each question enqueues a delivery, and no other event does', async () => {
  const target = await startRun();
  const { db } = subscriptions.database;
  const error = { code: 'environment_setup_failed', message: 'x' } as const;
  await finishRun(subscriptions.deps, db, { ...target, report: { success: false, summary: 'x', error } });
  const from = { kind: 'user', uid: 'u' } as const;
  const say = () => db.transaction((tx) => acceptFollowup(tx, target.runId, { message: 'look', from }));
  await subscriptions.subscribe();
  for (const _ of [1, 2]) {
    expect((await say()).kind).toBe('debugging');
    expect(await block(db, target)).toBe(true);
    expect(await block(db, target), 'it waits already').toBe(false);
  }
  expect(await told()).toEqual([
    ['run.blocked', 'FAILED'],
    ['run.blocked', 'FAILED'],
  ]);
  const events = await db.query<{ seq: number }>(
    "SELECT seq FROM run_events WHERE run_id = $1 AND event_type = 'oz_run_blocked' ORDER BY seq",
    [target.runId],
  );
  expect((await subscriptions.deliveries()).map(({ data }) => ({ seq: data.seq }))).toEqual(events);
});

test('a transaction that is rolled back leaves no delivery', async () => {
  await subscriptions.subscribe({ events: ['run.blocked'] });
  const target = await startRun();
  const { db } = subscriptions.database;
  const failed = db.transaction(async (tx) => {
    expect(await block(tx, target)).toBe(true);
    throw new Error('the rest of the transaction failed');
  });
  await expect(failed).rejects.toThrow('the rest');
  expect(await told()).toEqual([]);
  expect(await block(db, target)).toBe(true);
  expect(await block(db, target)).toBe(false);
  expect(await told()).toEqual([['run.blocked', 'BLOCKED']]);
});

test('for a retry, only the start of the new agent enqueues a delivery', async () => {
  await subscriptions.subscribe({ events: ['run.started', 'run.ended'] });
  const target = await startRun();
  await finishRun(subscriptions.deps, subscriptions.database.db, {
    ...target,
    report: { success: false, summary: 'x', error: { code: 'internal_error', message: 'x' } },
  });
  expect(await told()).toEqual([['run.started', 'INPROGRESS']]);
});

test('runs that are created together enqueue one delivery for each run and subscription', async () => {
  const first = await subscriptions.subscribe({ events: ['run.created'] });
  const second = await subscriptions.subscribe({ events: ['run.created', 'run.ended'] });
  const runIds = await Promise.all(Array.from({ length: 30 }, () => subscriptions.newRun()));
  const rows = await subscriptions.database.db.query<{ subscription_id: string; run_id: string }>(
    "SELECT subscription_id, data->>'run_id' AS run_id FROM event_deliveries",
  );
  const expected = [first, second].flatMap((id) => runIds.map((runId) => `${id} ${runId}`));
  expect(rows.map((row) => `${row.subscription_id} ${row.run_id}`).sort()).toEqual(expected.sort());
});

describe('the notified subscriptions', () => {
  test('are not those of other teams, and not disabled ones', async () => {
    await subscriptions.subscribe({}, await insertTeam(subscriptions.database));
    await subscriptions.subscribe({ enabled: false });
    await subscriptions.newRun();
    expect(await told()).toEqual([]);
  });

  test.each([
    ['source', { source: 'CLI' } as const, { source: 'CLI' }, { source: 'API' }],
    ['name', { name: 'nightly' }, { name: 'nightly' }, { name: 'nightly-2' }],
    ['a missing name', { name: 'nightly' }, { name: 'nightly' }, {}],
    ['metadata', { metadata: { a: '1', b: '2' } }, { metadata: { a: '1', b: '2', c: '3' } }, { metadata: { a: '1' } }],
    ['another value', { metadata: { a: '1' } }, { metadata: { a: '1' } }, { metadata: { a: '2' } }],
    ['all of it', { source: 'CLI', name: 'n' } as const, { source: 'CLI', name: 'n' }, { source: 'CLI' }],
  ])('are selected by a filter on %s', async (_, filter, matching, other) => {
    await subscriptions.subscribe({ filter });
    await subscriptions.newRun(other as never);
    expect(await told()).toEqual([]);
    const runId = await subscriptions.newRun(matching as never);
    expect((await subscriptions.deliveries()).map(({ data }) => data.run_id)).toEqual([runId]);
  });

  test('get no event of a run that does not match their filter, neither its first event nor later events', async () => {
    await subscriptions.subscribe({ events: ['run.started'], filter: { metadata: { a: '1' } } });
    await startRun({ metadata: { a: '2' } });
    expect(await told()).toEqual([]);
    await startRun({ metadata: { a: '1' } });
    expect(await told()).toEqual([['run.started', 'INPROGRESS']]);
  });
});

test('a run can be changed even if a subscription to it is deleted at the same time', async () => {
  const { db } = subscriptions.database;
  const id = await subscriptions.subscribe();
  const target = await startRun();
  const deleted = Promise.withResolvers<void>();
  const deleting = db.transaction(async (tx) => {
    await tx.query('DELETE FROM event_subscriptions WHERE id = $1', [id]);
    await deleted.promise;
  });
  expect(await block(db, target)).toBe(true);
  deleted.resolve();
  await deleting;
});

test('the id of a delivery is a UUIDv7 with the time of the delivery', async () => {
  await subscriptions.subscribe();
  const before = randomUUIDv7();
  await subscriptions.newRun();
  const [delivery] = await subscriptions.deliveries();
  expect(delivery?.id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  const msOf = (id = '') => Number.parseInt(id.replaceAll('-', '').slice(0, 12), 16);
  expect(Math.abs(msOf(delivery?.id) - msOf(before))).toBeLessThan(10_000);
});
