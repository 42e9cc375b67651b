import type { Factory } from '@runyard/contract/factories';
import { expect, test } from 'vitest';
import { at, testAutomations } from '../../test/automations.ts';
import { openTestService } from '../../test/service.ts';
import { definedStatements } from '../store/database/statement.ts';

interface PlanNode {
  readonly 'Rows Removed by Filter'?: number;
  readonly Plans?: readonly PlanNode[];
}

const removed = (node: PlanNode): number =>
  (node['Rows Removed by Filter'] ?? 0) + (node.Plans ?? []).reduce((sum, each) => sum + removed(each), 0);

test('the search for starts that cancel runs, each second, reads no other starts, also after many at once', async () => {
  const service = await openTestService();
  const { db } = service.deps;
  const factory = (await service.request<Factory>('POST', '/factory', { body: { name: 'Test' } })).body;
  const { uid } = await testAutomations(service, factory.uid).create([at()]);
  const statement = definedStatements.find(({ name }) => name === 'find_starts_that_cancel_runs');
  const plan = await db.transaction(async (tx) => {
    await tx.query(
      `INSERT INTO automation_starts (automation_uid, webhook_uid, delivery_id, run_id, cancels_previous)
        SELECT $1, 'W', gen_random_uuid(), gen_random_uuid(), n > 2998 FROM generate_series(1, 3000) n`,
      [uid],
    );
    const [row] = await tx.query<{ 'QUERY PLAN': [{ Plan: PlanNode }] }>(
      `EXPLAIN (ANALYZE, FORMAT JSON) ${statement?.text}`,
    );
    return row?.['QUERY PLAN'][0].Plan;
  });
  expect(plan && removed(plan)).toBe(0);
});
