import { expect, test } from 'vitest';
import { closeAtEnd } from '../../../../../../test/support/close-at-end.ts';
import { openTestExecutions } from '../../../../test/executions.ts';
import { hashRunToken } from '../../executions/queue/assign.ts';
import { refuseChild } from './admit-child.ts';

const t = closeAtEnd(await openTestExecutions());

test('a child is refused if the tree already has its maximum number of runs, including ended runs', async () => {
  const root = await t.newRun();
  const assignment = await t.assign(await t.newConnection());
  if (!assignment) throw new Error('nothing was assigned');
  const child = { parentRunId: root, ancestorIds: [root] };
  const refusal = (maxInTree?: number) =>
    t.deps.db.transaction((tx) =>
      refuseChild(tx, child, {
        ...{ attempt: { ...assignment, tokenHash: hashRunToken(assignment.runToken) }, maxLive: 8 },
        ...(maxInTree === undefined ? {} : { maxInTree }),
      }),
    );
  const below = await t.newRun(child);
  await t.newRun({ parentRunId: below, ancestorIds: [below, root] });
  await t.newRun();
  await t.deps.db.query("UPDATE runs SET state = 'SUCCEEDED' WHERE id = $1", [below]);
  expect(await refusal(3)).toBe(null);
  expect(await refusal(2)).toBe('tree_used_up');
  expect(await refusal(), 'a request that starts no run has no limit').toBe(null);
  await t.deps.db.query('DELETE FROM runs WHERE id = $1', [below]);
  expect(await refusal(2)).toBe(null);
});
