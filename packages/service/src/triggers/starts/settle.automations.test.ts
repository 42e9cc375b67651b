import type { Factory } from '@runyard/contract/factories/factories';
import { describe, expect, test } from 'vitest';
import { at, testAutomations } from '../../../test/automations.ts';
import { deleteRows } from '../../../test/retention.ts';
import { openTestService } from '../../../test/service.ts';
import { definedStatements } from '../../platform/store/database/statement.ts';
import { startsDomain } from './domain.ts';
import { cancelReplaced } from './replace.ts';
import { startWaiting } from './settle.ts';

const service = await openTestService();
const { db } = service.deps;
const factory = (await service.request<Factory>('POST', '/factory', { body: { name: 'Test' } })).body;
const automations = testAutomations(service, factory.uid);

interface PlanNode {
  readonly 'Rows Removed by Filter'?: number;
  readonly Plans?: readonly PlanNode[];
}

const removed = (node: PlanNode): number =>
  (node['Rows Removed by Filter'] ?? 0) + (node.Plans ?? []).reduce((sum, each) => sum + removed(each), 0);

test.each([
  ['cancel runs', 'find_starts_that_cancel_runs'],
  ['may start', 'find_startable_starts'],
])(
  'the search for starts that %s, once a second, reads no other starts, even after many starts at once',
  async (_, name) => {
    const { uid } = await automations.create([at()]);
    const statement = definedStatements.find((each) => each.name === name);
    const plan = await db.transaction(async (tx) => {
      await tx.query(
        `INSERT INTO starts (automation_uid, webhook_uid, delivery_id, outcome, run_id, cancels_previous)
        SELECT $1, 'W', gen_random_uuid(), 'started', gen_random_uuid(), n > 2998 FROM generate_series(1, 3000) n`,
        [uid],
      );
      const [row] = await tx.query<{ 'QUERY PLAN': [{ Plan: PlanNode }] }>(
        `EXPLAIN (ANALYZE, FORMAT JSON) ${statement?.text}`,
      );
      return row?.['QUERY PLAN'][0].Plan;
    });
    expect(plan && removed(plan)).toBe(0);
  },
);

describe('a hundred starts that stay in the table', () => {
  test('because the service cannot create their runs do not delay another automation', async () => {
    const bad = await automations.create([at()], { overlap: 'queue' });
    const good = await automations.create([at()], { overlap: 'queue' });
    for (const [{ uid }, count] of [
      [bad, 120],
      [good, 1],
    ] as const)
      await db.query(
        `INSERT INTO starts (schedule_id, automation_uid, due_at, lane, outcome, reason)
         SELECT s.id, $1, now() + n * interval '1 second', n, 'waiting', 'waits'
         FROM schedules s, generate_series(1, $2::int) n WHERE s.automation_uid = $1`,
        [uid, count],
      );
    // The API never stores this value. The value makes the code that creates the run throw.
    await db.query(`UPDATE automations SET config = '{"mcp_servers": {"a": null}}' WHERE uid = $1`, [bad.uid]);
    await startWaiting(service.deps);
    expect((await automations.fires(good.uid)).map(({ outcome }) => outcome)).toEqual(['started']);
    expect(new Set((await automations.fires(bad.uid)).map(({ outcome }) => outcome))).toEqual(new Set(['waiting']));
  });

  test('because they must cancel a PENDING run do not delay the cancelling of other runs', async () => {
    const [pending, queued] = [
      await automations.create([at()], { overlap: 'cancel_previous' }),
      await automations.create([at()], { overlap: 'cancel_previous' }),
    ];
    await automations.fireNow(pending.uid);
    await db.query(`UPDATE runs SET state = 'PENDING' WHERE metadata ->> 'automation_id' = $1`, [pending.uid]);
    await db.query(
      `INSERT INTO starts (automation_uid, webhook_uid, delivery_id, outcome, run_id, cancels_previous)
       SELECT $1, 'W', gen_random_uuid(), 'started', gen_random_uuid(), true FROM generate_series(1, 120)`,
      [pending.uid],
    );
    await automations.fireNow(queued.uid);
    await automations.fireNow(queued.uid);
    await cancelReplaced(service.deps);
    const states = await db.query(
      `SELECT state FROM runs WHERE metadata ->> 'automation_id' = $1 ORDER BY created_at, id`,
      [queued.uid],
    );
    expect(states).toEqual([{ state: 'CANCELLED' }, { state: 'QUEUED' }]);
  });
});

test('deleting old starts keeps starts that still wait', async () => {
  const { uid } = await automations.create([at()], { overlap: 'queue' });
  await automations.fireNow(uid);
  await automations.fireNow(uid);
  const [live] = (await automations.fires(uid)).slice(-1);
  await db.query(`UPDATE starts SET id = ('00000000-0000-7' || right(id::text, 21))::uuid WHERE automation_uid = $1`, [
    uid,
  ]);
  for (const rule of startsDomain(service.deps).retention?.rows ?? []) await deleteRows(db, rule);
  await db.query(`UPDATE runs SET state = 'SUCCEEDED' WHERE id = $1`, [live?.run_id]);
  await startWaiting(service.deps);
  expect((await automations.fires(uid)).map(({ outcome }) => outcome)).toEqual(['started', 'started']);
});
