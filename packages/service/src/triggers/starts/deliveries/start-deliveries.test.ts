/** Deliveries that one transaction accepts together: each delivery counts the earlier ones in its lane. */
import { randomUUIDv7 } from 'node:crypto';
import { maxWaitingFires } from '@runyard/contract/limits';
import type { RunState } from '@runyard/contract/runs/states';
import { beforeEach, describe, expect, test } from 'vitest';
import { on, testAutomations } from '../../../../test/automations.ts';
import { openTestService } from '../../../../test/service.ts';
import { testWebhooks } from '../../../../test/webhooks.ts';
import { identify } from '../../webhooks/ingest/read-request.ts';
import { cancelReplaced } from '../replace.ts';
import { startWaiting } from '../settle.ts';
import { writeStarting } from './start-deliveries.ts';

const service = await openTestService();
const { deps } = service;
const { db } = deps;
const { factory, create: createWebhook, log, reset } = await testWebhooks(service);
const { create } = testAutomations(service, factory.uid);
beforeEach(async () => {
  await db.query('DELETE FROM automations');
  await reset();
});

/** Creates an automation and delivers all payloads to it in one transaction. Returns the UIDs of the automation and of the webhook. */
async function deliver(members: Record<string, unknown>, payloads: readonly unknown[]) {
  const webhook = await createWebhook();
  const { uid } = await create([on(webhook)], members);
  const known = await deps.webhooks.find(webhook.uid);
  if (!known) throw new Error('the webhook is not known');
  const deliveries = payloads.map((payload, n) => {
    const body = Buffer.from(JSON.stringify({ n, payload }));
    const identity = identify(known, {}, body, payload);
    return { webhook: known, id: randomUUIDv7(), body, payload, identity, event: null, headers: {} };
  });
  const write = () => db.transaction((tx) => writeStarting(tx, deps.startDeliveries, deliveries));
  return { uid, webhook, write };
}

const outcomes = async (uid: string) =>
  (
    await db.query<{ outcome: string; cancels: boolean }>(
      'SELECT outcome, cancels_previous AS cancels FROM starts WHERE automation_uid = $1 ORDER BY id',
      [uid],
    )
  ).map(({ outcome, cancels }) => (cancels ? `${outcome}, cancels` : outcome));

/** The states of the runs, in the order of their starts. */
const states = async (uid: string) =>
  (
    await db.query<{ state: RunState }>(
      'SELECT r.state FROM starts s JOIN runs r ON r.id = s.run_id WHERE s.automation_uid = $1 ORDER BY s.id',
      [uid],
    )
  ).map(({ state }) => state);

describe('deliveries of one transaction', () => {
  const same = (count: number) => Array.from({ length: count }, () => ({ id: 1 }));
  test.each<[string, Record<string, unknown>, unknown[], string[]]>([
    ['allow starts each', { overlap: 'allow' }, same(3), ['started', 'started', 'started']],
    ['skip starts the first', { overlap: 'skip' }, same(3), ['started', 'skipped', 'skipped']],
    [
      'skip starts the first of each lane',
      { overlap: 'skip', concurrency_key: 'id' },
      [{ id: 1 }, { id: 2 }, { id: 1 }, { id: '1' }],
      ['started', 'started', 'skipped', 'started'],
    ],
    [
      'queue lets some wait',
      { overlap: 'queue' },
      same(maxWaitingFires + 2),
      ['started', ...Array(maxWaitingFires).fill('waiting'), 'skipped'],
    ],
    [
      'cancel_previous cancels the previous run for each start',
      { overlap: 'cancel_previous' },
      same(3),
      ['started', 'started, cancels', 'started, cancels'],
    ],
  ])('%s', async (_name, members, payloads, expected) => {
    const { uid, webhook, write } = await deliver(members, payloads);
    expect(await write()).toEqual(payloads.map(() => ({ kind: 'accepted' })));
    expect(await outcomes(uid)).toEqual(expected);
    const started = expected.filter((outcome) => outcome.startsWith('started'));
    expect((await log(webhook, '?limit=100')).flatMap(({ runs = [] }) => runs)).toHaveLength(started.length);
  });

  test('leave the last run of a lane live if each cancels the previous run', async () => {
    const { uid, write } = await deliver({ overlap: 'cancel_previous' }, same(3));
    await write();
    await cancelReplaced(deps);
    expect(await states(uid)).toEqual(['CANCELLED', 'CANCELLED', 'QUEUED']);
    expect(await outcomes(uid)).toEqual(['started', 'started', 'started']);
  });

  test('start all waiting runs in their order when the policy becomes allow', async () => {
    const { uid, write } = await deliver({ overlap: 'queue' }, same(4));
    await write();
    await db.query(`UPDATE automations SET overlap = 'allow' WHERE uid = $1`, [uid]);
    await startWaiting(deps);
    expect(await outcomes(uid)).toEqual(['started', 'started', 'started', 'started']);
  });

  test('that cannot start a run are recorded as failed starts, and count as failures', async () => {
    const { uid, write } = await deliver({ overlap: 'skip' }, same(2));
    await db.query(`UPDATE automations SET agent = 'gone' WHERE uid = $1`, [uid]);
    await write();
    expect(await outcomes(uid)).toEqual(['failed', 'failed']);
    const [counted] = await db.query('SELECT spawn_failures AS failures FROM automations WHERE uid = $1', [uid]);
    expect(counted).toEqual({ failures: 2 });
  });
});
