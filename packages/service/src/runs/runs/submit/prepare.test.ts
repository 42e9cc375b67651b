import { beforeEach, expect, test } from 'vitest';
import { closeAtEnd } from '../../../../../../test/support/close-at-end.ts';
import { openTestExecutions, type TestExecutions } from '../../../../test/executions.ts';
import { readTeamState } from './prepare.ts';

let t: TestExecutions;
beforeEach(async () => {
  t = closeAtEnd(await openTestExecutions());
});

test('preparing a run does not fail if the transaction of another caller failed a moment before', async () => {
  let other: unknown;
  const failing = t.deps.db.transaction(async (tx) => {
    await tx.query('SELECT 1 / 0').catch(() => undefined);
    const within = readTeamState(t.deps, tx, { teamId: t.teamId });
    within.catch(() => undefined);
    other = await readTeamState(t.deps, undefined, { teamId: t.teamId }).catch((error: Error) => error.message);
    await within;
  });
  await expect(failing).rejects.toThrow('current transaction is aborted');
  expect(other).toMatchObject({ at_capacity: true, is_out_of_credits: false });
});
