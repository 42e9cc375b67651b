/**
 * Tests deliveries that one transaction accepts together. For each delivery, the runs of earlier deliveries of the transaction in the
 * same lane count too.
 */
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
import { writeDeliveries } from './start-deliveries.ts';

const service = await openTestService();
const { deps } = service;
const { db } = deps;
const { factory, create: createWebhook, log, reset } = await testWebhooks(service);
const { create } = testAutomations(service, factory.uid);
beforeEach(async () => {
  await db.query('DELETE FROM automations');
  await reset();
});

/** Creates an automation with a webhook. Returns both, and a function that delivers all payloads to the automation in one transaction. */
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
  const write = () => writeDeliveries(deps, deliveries);
  return { uid, webhook, write };
}

const outcomes = async (uid: string) =>
  (
    await db.query<{ outcome: string; cancels: boolean }>(
      'SELECT outcome, cancels_previous AS cancels FROM starts WHERE automation_uid = $1 ORDER BY id',
      [uid],
    )
  ).map(({ outcome, cancels }) => (cancels ? `${outcome}, cancels` : outcome));

/** Returns the states of the automation's runs, in the order of their starts. */
const states = async (uid: string) =>
  (
    await db.query<{ state: RunState }>(
      'SELECT r.state FROM starts s JOIN runs r ON r.id = s.run_id WHERE s.automation_uid = $1 ORDER BY s.id',
      [uid],
    )
  ).map(({ state }) => state);

describe('several deliveries of one transaction', () => {
  const same = (count: number) => Array.from({ length: count }, () => ({ id: 1 }));
  test.each<[string, Record<string, unknown>, unknown[], string[]]>([
    ['start a run each with the policy allow', { overlap: 'allow' }, same(3), ['started', 'started', 'started']],
    ['start only the first run with the policy skip', { overlap: 'skip' }, same(3), ['started', 'skipped', 'skipped']],
    [
      'start the first run of each lane with the policy skip',
      { overlap: 'skip', concurrency_key: 'id' },
      [{ id: 1 }, { id: 2 }, { id: 1 }, { id: '1' }],
      ['started', 'started', 'skipped', 'started'],
    ],
    [
      'start one run with the policy queue, and a limited number of the others wait',
      { overlap: 'queue' },
      same(maxWaitingFires + 2),
      ['started', ...Array(maxWaitingFires).fill('waiting'), 'skipped'],
    ],
    [
      'start a run each with the policy cancel_previous, and cancel the previous one',
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

  test('leave only the last run of a lane live if each run cancels the previous one', async () => {
    const { uid, write } = await deliver({ overlap: 'cancel_previous' }, same(3));
    await write();
    await cancelReplaced(deps);
    expect(await states(uid)).toEqual(['CANCELLED', 'CANCELLED', 'QUEUED']);
    expect(await outcomes(uid)).toEqual(['started', 'started', 'started']);
  });

  test('that wait start their runs in their order when the policy becomes allow', async () => {
    const { uid, write } = await deliver({ overlap: 'queue' }, same(4));
    await write();
    await db.query(`UPDATE automations SET overlap = 'allow' WHERE uid = $1`, [uid]);
    await startWaiting(deps);
    expect(await outcomes(uid)).toEqual(['started', 'started', 'started', 'started']);
  });

  test('are recorded as failed starts and count as failures if they cannot start a run', async () => {
    const { uid, write } = await deliver({ overlap: 'skip' }, same(2));
    await db.query(`UPDATE automations SET agent = 'gone' WHERE uid = $1`, [uid]);
    await write();
    expect(await outcomes(uid)).toEqual(['failed', 'failed']);
    const [counted] = await db.query('SELECT spawn_failures AS failures FROM automations WHERE uid = $1', [uid]);
    expect(counted).toEqual({ failures: 2 });
  });
});
