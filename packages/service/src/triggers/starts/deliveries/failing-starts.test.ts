/** Tests deliveries to automations whose runs cannot be prepared, and processes that are killed while they write deliveries. */
import { randomUUID, randomUUIDv7 } from 'node:crypto';
import { beforeEach, describe, expect, test } from 'vitest';
import { on, testAutomations } from '../../../../test/automations.ts';
import { openTestService } from '../../../../test/service.ts';
import { testWebhooks } from '../../../../test/webhooks.ts';
import type { Transaction } from '../../../platform/store/database/database.ts';
import { StoreUnavailable } from '../../../platform/store/database/unavailable.ts';
import { identify } from '../../webhooks/ingest/read-request.ts';
import { trimPayloads } from '../../webhooks/log/retention.ts';
import { startWaiting } from '../settle.ts';
import { writeDeliveries } from './start-deliveries.ts';

const service = await openTestService();
const { deps } = service;
const { db } = deps;
const { factory, create: createWebhook, send, log, reset } = await testWebhooks(service);
const { create, read } = testAutomations(service, factory.uid);
beforeEach(async () => {
  await db.query('DELETE FROM automations');
  await reset();
});

/** Stores a value that the API never stores. It makes the code that creates the run throw. */
const breakRuns = (uid: string) =>
  db.query(`UPDATE automations SET config = '{"mcp_servers": {"a": null}}' WHERE uid = $1`, [uid]);
const repairRuns = (uid: string) => db.query(`UPDATE automations SET config = '{}' WHERE uid = $1`, [uid]);
/** Returns the outcomes of the starts of an automation, in their order. */
const outcomes = async (uid: string) =>
  (
    await db.query<{ outcome: string; undecided: boolean; cancels: boolean }>(
      'SELECT outcome, undecided, cancels_previous AS cancels FROM starts WHERE automation_uid = $1 ORDER BY id',
      [uid],
    )
  ).map(
    ({ outcome, undecided, cancels }) => `${undecided ? 'undecided, ' : ''}${outcome}${cancels ? ', cancels' : ''}`,
  );

/** Returns a database whose transactions are changed. */
const changing = (change: (tx: Transaction) => Transaction): typeof db => ({
  ...db,
  transaction: (work) => db.transaction((tx) => work(change(tx))),
});
const nameOf = (statement: Parameters<Transaction['query']>[0]) =>
  typeof statement === 'string' ? statement : statement.name;

async function deliveriesTo(webhookUid: string, bodies: readonly string[]) {
  const webhook = await deps.webhooks.find(webhookUid);
  if (!webhook) throw new Error('the webhook is not known');
  return bodies.map((text) => {
    const body = Buffer.from(text);
    const identity = identify(webhook, {}, body);
    return { webhook, id: randomUUIDv7(), body, payload: JSON.parse(text), identity, event: null, headers: {} };
  });
}

describe('an automation whose runs cannot be prepared', () => {
  test('delays no other automation of its delivery, and its start waits and gets the payload later', async () => {
    const webhook = await createWebhook();
    const [bad, ...good] = [await create([on(webhook)]), await create([on(webhook)]), await create([on(webhook)])];
    await breakRuns(bad.uid);
    const sent = await Promise.all(['1', '2', '3'].map((body) => send(webhook, { body })));
    expect(sent.map(({ status }) => status)).toEqual([202, 202, 202]);
    for (const { uid } of good) expect(await outcomes(uid)).toEqual(['started', 'started', 'started']);
    expect(await outcomes(bad.uid)).toEqual(Array(3).fill('undecided, waiting'));
    for (const { runs, automations } of await log(webhook)) {
      expect(runs).toHaveLength(2);
      expect(automations).toContainEqual({
        automation_id: bad.uid,
        matched: true,
        reason: 'waits: the service could not create the run; its log has the reason. It tries again',
      });
    }
    expect(service.logged.some((line) => line.includes(bad.uid) && line.includes('TypeError'))).toBe(true);
    await startWaiting(deps);
    expect(await outcomes(bad.uid)).toEqual(Array(3).fill('undecided, waiting'));
    expect(await read(bad.uid)).toMatchObject({ enabled: true });
    await repairRuns(bad.uid);
    await startWaiting(deps);
    expect(await outcomes(bad.uid)).toEqual(['started', 'started', 'started']);
    for (const { runs } of await log(webhook)) expect(runs).toHaveLength(3);
    const payloads = await db.query<{ payload: string }>(
      `SELECT convert_from(a.content, 'UTF8') AS payload FROM starts s JOIN attachments a ON a.run_id = s.run_id
       WHERE s.automation_uid = $1 ORDER BY s.id`,
      [bad.uid],
    );
    expect(payloads.map(({ payload }) => payload)).toEqual(['1', '2', '3']);
  });

  test('because a statement fails delays no other automation of its batch', async () => {
    const [webhook, other] = [await createWebhook(), await createWebhook()];
    const { body: environment } = await service.request<{ uid: string }>('POST', '/agent/environments', {
      body: { config: { name: 'E' } },
    });
    const bad = await create([on(webhook)], { config: { environment_id: environment.uid } });
    const good = await create([on(webhook), on(other)]);
    const batch = [...(await deliveriesTo(webhook.uid, ['1', '2'])), ...(await deliveriesTo(other.uid, ['3']))];
    const failing = changing((tx) => ({
      ...tx,
      query: (statement: Parameters<Transaction['query']>[0], values?: readonly unknown[]) =>
        nameOf(statement) === 'read_named_environment' ? tx.query('SELECT 1 / 0') : tx.query(statement, values),
    }));
    expect(await writeDeliveries({ ...deps, db: failing }, batch)).toEqual(batch.map(() => ({ kind: 'accepted' })));
    expect(await outcomes(bad.uid)).toEqual(['undecided, waiting', 'undecided, waiting']);
    expect(await outcomes(good.uid)).toEqual(['started', 'started', 'started']);
    await startWaiting(deps);
    expect(await outcomes(bad.uid)).toEqual(['started', 'started']);
  });

  test.each([
    ['skip', ['started', 'skipped', 'skipped'], 'skipped: 1 of 1 runs are live'],
    ['queue', ['started', 'waiting', 'undecided, waiting'], 'waits: 1 of 1 runs are live'],
    ['cancel_previous', ['started', 'started, cancels', 'started, cancels'], undefined],
  ])('keeps the order of its lane with the policy %s', async (overlap, expected, reason) => {
    const webhook = await createWebhook();
    const { uid } = await create([on(webhook)], { overlap, concurrency_key: 'lane' });
    await breakRuns(uid);
    await send(webhook, { body: '{"lane": 1, "n": 1}' });
    await repairRuns(uid);
    for (const body of ['{"lane": 1, "n": 2}', '{"lane": 2}', '{"lane": 1, "n": 3}']) await send(webhook, { body });
    const waits = 'undecided, waiting';
    expect(await outcomes(uid)).toEqual([waits, waits, 'started', waits]);
    await startWaiting(deps);
    expect((await outcomes(uid)).toSpliced(2, 1)).toEqual(expected);
    // The deliveries are listed newest first.
    expect((await log(webhook))[2]?.automations?.[0]?.reason).toBe(reason);
  });

  test('has at most 100 such starts in a lane', async () => {
    const webhook = await createWebhook();
    const { uid } = await create([on(webhook)]);
    await breakRuns(uid);
    for (let round = 0; round < 3; round += 1) {
      await db.query(`UPDATE webhooks SET recent = '{}'`);
      await writeDeliveries(
        deps,
        await deliveriesTo(
          webhook.uid,
          Array.from({ length: 40 }, (_, n) => `[${round}, ${n}]`),
        ),
      );
    }
    const counts = Map.groupBy(await outcomes(uid), (outcome) => outcome);
    expect([counts.get('undecided, waiting')?.length, counts.get('skipped')?.length]).toEqual([100, 20]);
  });

  test('fails a start after a day, so that the next start of its lane is tried', async () => {
    const webhook = await createWebhook();
    const { uid } = await create([on(webhook)]);
    await breakRuns(uid);
    await send(webhook, { body: '1' });
    await send(webhook, { body: '2' });
    await db.query(
      `UPDATE starts SET id = ('00000000-0000-7' || right(id::text, 21))::uuid
       WHERE id = (SELECT id FROM starts WHERE automation_uid = $1 ORDER BY id LIMIT 1)`,
      [uid],
    );
    await startWaiting(deps);
    expect(await outcomes(uid)).toEqual(['failed', 'undecided, waiting']);
    expect((await log(webhook)).at(-1)?.automations?.[0]?.reason).toContain('for a day');
    await repairRuns(uid);
    await startWaiting(deps);
    expect(await outcomes(uid)).toEqual(['failed', 'started']);
  });

  test('keeps the payload of a start that waits when the payloads of its webhook are trimmed', async () => {
    const webhook = await createWebhook();
    const { uid } = await create([on(webhook)]);
    await breakRuns(uid);
    await send(webhook, { body: '"waits"' });
    await db.query('UPDATE automations SET enabled = false');
    const others = Array.from({ length: 51 }, (_, n) => `${n}`);
    await writeDeliveries(deps, await deliveriesTo(webhook.uid, others));
    expect(await trimPayloads(db, 1)).toBe(1);
    const rows = await db.query<{ payload: string | null }>(
      `SELECT convert_from(payload, 'UTF8') AS payload FROM webhook_deliveries WHERE webhook_uid = $1 ORDER BY id LIMIT 3`,
      [webhook.uid],
    );
    expect(rows.map(({ payload }) => payload)).toEqual(['"waits"', null, expect.any(String)]);
  });
});

test('a delivery waits 2 s for a locked automation, then its start waits and other automations start', async () => {
  const webhook = await createWebhook();
  const [locked, free] = [
    await create([on(webhook)], { overlap: 'skip' }),
    await create([on(webhook)], { overlap: 'skip' }),
  ];
  const release = Promise.withResolvers<void>();
  const isLocked = Promise.withResolvers<void>();
  const other = db.transaction(async (tx) => {
    await tx.query('SELECT FROM automations WHERE uid = $1 FOR NO KEY UPDATE', [locked.uid]);
    isLocked.resolve();
    await release.promise;
  });
  await isLocked.promise;
  const began = performance.now();
  expect((await send(webhook)).status).toBe(202);
  expect(performance.now() - began).toBeGreaterThan(1_900);
  expect([await outcomes(locked.uid), await outcomes(free.uid)]).toEqual([['undecided, waiting'], ['started']]);
  await startWaiting(deps);
  expect(await outcomes(locked.uid)).toEqual(['undecided, waiting']);
  release.resolve();
  await other;
  await startWaiting(deps);
  expect(await outcomes(locked.uid)).toEqual(['started']);
});

describe('a process that is killed', () => {
  const killed = 'SELECT pg_terminate_backend(pg_backend_pid()), pg_sleep(10)';
  /** Returns a database whose connection ends in the transaction: after the answer of a statement, or before the commit. */
  const killing = (where: string) =>
    changing((tx) => ({
      ...tx,
      query: async (statement: Parameters<Transaction['query']>[0], values?: readonly unknown[]) => {
        const rows = await tx.query(statement, values);
        if (nameOf(statement) === where) await tx.query(killed);
        return rows;
      },
      atCommit: (statement, values) => {
        tx.atCommit(statement, values);
        if (statement.name === where) tx.atCommit({ name: 'kill', text: killed });
      },
    }));
  /** Ends the connection in the middle of a statement that writes this table. */
  const killInside = async (table: string) => {
    await db.query(
      `CREATE FUNCTION kill() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
         PERFORM pg_terminate_backend(pg_backend_pid()), pg_sleep(10); RETURN NULL; END $$`,
    );
    await db.query(`CREATE TRIGGER kill AFTER INSERT OR UPDATE ON ${table} EXECUTE FUNCTION kill()`);
  };

  test.each([
    ['after lock_webhooks_of_deliveries', 'lock_webhooks_of_deliveries'],
    ['after find_accepted_webhook_deliveries', 'find_accepted_webhook_deliveries'],
    ['after read_automations_of_webhooks', 'read_automations_of_webhooks'],
    ['after lock_overlaps_of_automations', 'lock_overlaps_of_automations'],
    ['before COMMIT', 'insert_runs_and_starts_of_deliveries'],
    ['in the statement that writes, at the budgets', { table: 'webhooks' }],
    ['in the statement that writes, at the deliveries', { table: 'webhook_deliveries' }],
    ['in the statement that writes, at the starts', { table: 'starts' }],
    ['in the statement that writes, at the runs', { table: 'runs' }],
  ])('%s loses and doubles nothing when its senders repeat', async (_, where) => {
    const [one, other] = [await createWebhook(), await createWebhook()];
    const { uid } = await create([on(one), on(other)], { overlap: 'queue', concurrency_key: 'lane' });
    const bodies = ['1', '2', '3'].map((lane) => JSON.stringify({ lane, id: randomUUID() }));
    const batch = async () => [
      ...(await deliveriesTo(one.uid, bodies.slice(0, 2))),
      ...(await deliveriesTo(other.uid, bodies.slice(2))),
    ];
    if (typeof where === 'object') await killInside(where.table);
    const attempt = writeDeliveries({ ...deps, db: typeof where === 'object' ? db : killing(where) }, await batch());
    await expect(attempt).rejects.toThrow(StoreUnavailable);
    await db.query('DROP FUNCTION IF EXISTS kill CASCADE');
    expect(
      await db.query('SELECT FROM webhook_deliveries WHERE webhook_uid = ANY ($1)', [[one.uid, other.uid]]),
    ).toEqual([]);
    expect(await writeDeliveries(deps, await batch())).toEqual(bodies.map(() => ({ kind: 'accepted' })));
    expect(await writeDeliveries(deps, await batch())).toEqual(bodies.map(() => ({ kind: 'duplicate' })));
    expect(await outcomes(uid)).toEqual(['started', 'started', 'started']);
    const whole = await db.query<{ payload: string }>(
      `SELECT convert_from(a.content, 'UTF8') AS payload FROM runs r JOIN starts s ON s.run_id = r.id
         JOIN webhook_deliveries d ON d.id = s.delivery_id AND d.runs = ARRAY[r.id::text] JOIN attachments a ON a.run_id = r.id
         JOIN executions e ON e.run_id = r.id
       WHERE r.metadata ->> 'automation_id' = $1`,
      [uid],
    );
    expect(whole.map(({ payload }) => payload).toSorted()).toEqual(bodies.toSorted());
    const budgets = await db.query('SELECT cardinality(recent) AS used FROM webhooks WHERE uid = ANY ($1)', [
      [one.uid, other.uid],
    ]);
    expect(budgets.toSorted()).toEqual([{ used: 4 }, { used: 2 }]);
  });
});
