import { beforeEach, expect, test } from 'vitest';
import { closeAtEnd } from '../../../../../test/support/close-at-end.ts';
import { openTestExecutions, type TestExecutions } from '../../../test/executions.ts';
import type { Queryable } from '../../platform/store/database/database.ts';
import { acceptFollowup } from '../runs/follow-ups/accept.ts';
import { cancelRun } from './cancel/cancel.ts';
import { openNotices } from './notices.ts';
import { appendTimelineEvent } from './timeline/timeline.ts';
import { start } from './transitions/transitions.ts';

let t: TestExecutions;
beforeEach(async () => {
  t = closeAtEnd(await openTestExecutions());
});

/** Returns notices that never arrive, as if each process ended between its commits and their notices, and counts the statements. */
async function withoutNotices() {
  let statements = 0;
  const query: Queryable['query'] = async (statement: never, values?: readonly unknown[]) => {
    statements += 1;
    return (await t.deps.db.query(statement, values)) as never;
  };
  const notices = await openNotices({ ...t.deps.db, query, listen: async () => () => undefined });
  return { notices, statements: () => statements };
}

test('lost notices are found: those for readers of a run, and those for its agent', async () => {
  const session = await t.newSession();
  const { runId, executionId } = session;
  const { notices } = await withoutNotices();
  const heard: string[] = [];
  notices.onRun(runId, () => heard.push('readers'));
  notices.onAgent(runId, () => heard.push('agent'));
  const found = async () => {
    heard.length = 0;
    await notices.findLost();
    return [...heard];
  };
  expect(await found(), 'a change before the first look may be lost too').toEqual(['readers', 'agent']);
  expect(await found()).toEqual([]);
  await appendTimelineEvent(t.deps.db, { runId, executionId, type: 'setup_step_started' });
  expect(await found()).toEqual(['readers']);
  await start(t.deps.db, { runId, executionId });
  await found();
  await t.deps.db.query('UPDATE executions SET lease_until = clock_timestamp()');
  expect(await found(), 'a renewed lease').toEqual([]);
  await t.deps.db.transaction((tx) => acceptFollowup(tx, runId, { message: 'M', from: { kind: 'user', uid: 'u' } }));
  expect(await found()).toEqual(['readers', 'agent']);
  await t.deps.db.query('UPDATE executions SET interrupted_turn = 1');
  expect(await found()).toEqual(['agent']);
  await cancelRun(t.deps, runId);
  expect(await found()).toEqual(['readers', 'agent']);
  await t.deps.db.query('DELETE FROM runs');
  expect(await found()).toEqual(['readers', 'agent']);
  expect(await found()).toEqual([]);
});

test('one statement looks for lost notices for all that wait, and none if nothing waits', async () => {
  const { notices, statements } = await withoutNotices();
  await notices.findLost();
  expect(statements()).toBe(0);
  const stops: (() => void)[] = [];
  let heard = 0;
  for (let n = 0; n < 20; n += 1) {
    const runId = await t.newRun();
    for (const listen of [notices.onRun, notices.onAgent, notices.onRun])
      stops.push(
        listen(runId, () => {
          heard += 1;
        }),
      );
  }
  await notices.findLost();
  expect([statements(), heard]).toEqual([1, 60]);
  for (const stop of stops) stop();
  await notices.findLost();
  expect(statements()).toBe(1);
});
