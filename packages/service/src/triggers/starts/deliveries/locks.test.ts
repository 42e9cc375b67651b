/** Tests that a delivery and a concurrent change of the automations that it starts cause no deadlock. */
import { randomUUIDv7 } from 'node:crypto';
import type { Factory } from '@runyard/contract/factories/factories';
import { expect, test, vi } from 'vitest';
import { at, on, testAutomations } from '../../../../test/automations.ts';
import { openTestService } from '../../../../test/service.ts';
import type { Database, Transaction } from '../../../platform/store/database/database.ts';
import type { Author } from '../../../team/access/audit/record.ts';
import type { Principal } from '../../../team/access/keys/principal.ts';
import { deleteAutomation, updateAutomation } from '../../automations/automations.ts';
import { applyDefinition } from '../../definitions/apply.ts';
import { deleteFactory } from '../../factories/factories.ts';
import { identify } from '../../webhooks/ingest/read-request.ts';
import { fireDueSchedules } from '../times/fire.ts';
import { writeDeliveries } from './start-deliveries.ts';

const service = await openTestService();
const { deps } = service;
const { db } = deps;
const [person] = await db.query<{ uid: string }>(
  `SELECT u.uid FROM users u JOIN team_members m ON m.user_id = u.id WHERE m.team_id = $1 AND m.role = 'admin'`,
  [service.teamId],
);
const author: Author = {
  teamId: service.teamId,
  creator: { kind: 'user', uid: person?.uid ?? '' },
  from: null,
  keyId: null,
};

/** Returns a database that counts how often transactions begin. A transaction that is repeated after a deadlock counts twice. */
function counting(wrap = (tx: Transaction) => tx): { readonly counted: Database; begun(): number } {
  let begun = 0;
  const transaction = <T>(work: (tx: Transaction) => Promise<T>) =>
    db.transaction<T>((tx) => {
      begun += 1;
      return work(wrap(tx));
    });
  return { counted: { ...db, transaction }, begun: () => begun };
}

/** Waits until any transaction waits for a lock, or until `other` has ended. */
async function waitForLock(other: Promise<unknown>): Promise<void> {
  let hasEnded = false;
  const note = () => {
    hasEnded = true;
  };
  other.then(note, note);
  await vi.waitUntil(
    async () => {
      const [row] = await db.query<{ waits: boolean }>(
        `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock') AS waits`,
      );
      return hasEnded || row?.waits;
    },
    { timeout: 60_000, interval: 10 },
  );
}

interface Others {
  readonly counted: Database;
  readonly factoryUid: string;
  /** UIDs of two automations, the greater UID first. A delivery locks the automations in the reverse order. */
  readonly uids: readonly [string, string];
}

const files = [
  {
    path: 'factory.yaml',
    content: 'schemaVersion: v1alpha1\nname: F\nrepositories: []\nagentDefaults:\n  model: runbook\n',
  },
  { path: 'agents/foreman/agent.md', content: '---\nagentType: FOREMAN\n---\n' },
];

test.each<[string, (others: Others) => Promise<unknown>]>([
  ['the deletion of the factory', ({ counted, factoryUid }) => deleteFactory(counted, author, factoryUid)],
  [
    'the deletion of an automation',
    ({ counted, factoryUid, uids }) => counted.transaction((tx) => deleteAutomation(tx, author, factoryUid, uids[0])),
  ],
  [
    'a new name of an automation',
    ({ counted, factoryUid, uids }) =>
      counted.transaction((tx) =>
        updateAutomation(deps, tx, author, factoryUid, uids[0], {
          name: 'new name',
          prompt: 'a',
          enabled: true,
          triggers: [{ provider: 'schedule', event: 'cron_fired', schedule: { cron: '@daily' } }],
          overlap: 'skip',
        }),
      ),
  ],
  [
    'an apply that deletes them',
    ({ counted, factoryUid }) =>
      applyDefinition({ ...deps, db: counted }, author as Principal, factoryUid, { files, dry_run: false }),
  ],
  ['a fire of their schedules', ({ counted }) => fireDueSchedules({ ...deps, db: counted })],
])('a delivery and %s do not wait for each other', async (_what, change) => {
  const { body: factory } = await service.request<Factory>('POST', '/factory', { body: { name: 'F' } });
  const path = `/factory/${factory.uid}`;
  const { create, makeDue } = testAutomations(service, factory.uid);
  const { body: webhook } = await service.request<{ uid: string }>('POST', `${path}/webhooks`, { body: { name: 'W' } });
  const made = [
    await create([on(webhook), at()], { overlap: 'skip' }),
    await create([on(webhook), at()], { overlap: 'skip' }),
  ];
  const [less = '', greater = ''] = made.map(({ uid }) => uid).toSorted((a, b) => (a < b ? -1 : 1));
  // Store an earlier definition that names both automations, the automation with the greater UID first.
  await db.query(
    `INSERT INTO factory_definitions (factory_uid, version, files, uids, applied_by_uid) VALUES ($1, 1, '[]', $2, 'x')`,
    [factory.uid, JSON.stringify({ webhooks: {}, automations: { a: greater, b: less } })],
  );
  for (const { uid } of made) await makeDue(uid);

  const reached = Promise.withResolvers<void>();
  const go = Promise.withResolvers<void>();
  /**
   * Stops the delivery between its two locks: it has read the automations with a weak lock, which prevents their deletion, and will take
   * the strong locks next.
   */
  const stopping = (tx: Transaction): Transaction => ({
    ...tx,
    query: async (statement: Parameters<Transaction['query']>[0], values?: readonly unknown[]) => {
      if (typeof statement === 'object' && statement.name === 'lock_overlaps_of_automations') {
        reached.resolve();
        await go.promise;
      }
      return await tx.query(statement, values);
    },
  });
  const known = await deps.webhooks.find(webhook.uid);
  if (!known) throw new Error('the webhook is not known');
  const body = Buffer.from('{}');
  const delivering = counting(stopping);
  const checked = {
    webhook: known,
    id: randomUUIDv7(),
    body,
    payload: {},
    identity: identify(known, {}, body),
    event: null,
    headers: {},
  };
  const delivery = writeDeliveries({ ...deps, db: delivering.counted }, [checked]);
  await reached.promise;
  const changing = counting();
  const changed = change({ counted: changing.counted, factoryUid: factory.uid, uids: [greater, less] });
  await waitForLock(changed);
  go.resolve();
  expect(await delivery).toEqual([{ kind: 'accepted' }]);
  await changed;
  expect([delivering.begun(), changing.begun()]).toEqual([1, 1]);
  await db.query('DELETE FROM factories WHERE uid = $1', [factory.uid]);
});

test('two batches with the same webhooks and automations in opposite orders lock each other out of nothing', async () => {
  const { body: factory } = await service.request<Factory>('POST', '/factory', { body: { name: 'F' } });
  const { create } = testAutomations(service, factory.uid);
  const path = `/factory/${factory.uid}/webhooks`;
  const newWebhook = async () => (await service.request<{ uid: string }>('POST', path, { body: { name: 'W' } })).body;
  const webhooks = [await newWebhook(), await newWebhook(), await newWebhook()];
  // Some runs fail, so the batches also count the failures of automations.
  for (const overlap of ['queue', 'queue', 'allow', 'allow'])
    await create(webhooks.map(on), { overlap, concurrency_key: 'lane' });
  await db.query(
    `UPDATE automations SET agent = 'gone' WHERE uid IN (SELECT max(uid) FROM automations GROUP BY overlap)`,
  );
  const batchOf = async (uids: readonly string[], round: number) =>
    await Promise.all(
      uids.map(async (uid) => {
        const known = await deps.webhooks.find(uid);
        if (!known) throw new Error('the webhook is not known');
        const body = Buffer.from(JSON.stringify({ lane: round }));
        const identity = identify(known, { 'x-service-delivery-id': `${round} ${Math.random()}` }, body);
        const payload = JSON.parse(String(body)) as unknown;
        return { webhook: known, id: randomUUIDv7(), body, payload, identity, event: null, headers: {} };
      }),
    );
  const uids = webhooks.map(({ uid }) => uid);
  const writing = counting();
  const before = 'SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()';
  const [{ deadlocks } = { deadlocks: -1 }] = await db.query<{ deadlocks: number }>(before);
  const rounds = 8;
  for (let round = 0; round < rounds; round += 1) {
    const batches = [await batchOf(uids, round), await batchOf(uids.toReversed(), round)];
    const written = await Promise.all(batches.map((batch) => writeDeliveries({ ...deps, db: writing.counted }, batch)));
    expect(written.flat()).toEqual(Array(6).fill({ kind: 'accepted' }));
  }
  expect(writing.begun()).toBe(2 * rounds);
  expect(await db.query(before)).toEqual([{ deadlocks }]);
});
