import { afterEach, beforeEach, expect, test } from 'vitest';
import { openTestEngine, type TestEngine } from '../../../test/engine.ts';
import type { Assignment } from '../queue/assign.ts';
import { claim } from '../transitions/transitions.ts';
import { reconcile } from './reconcile.ts';
import { endSandbox } from './sandbox-end.ts';

let t: TestEngine;
let assignment: Assignment;

beforeEach(async () => {
  t = await openTestEngine();
  await t.newRun();
  const assigned = await t.assign(await t.newConnection());
  if (!assigned) throw new Error('nothing was assigned');
  assignment = assigned;
  const { runId, executionId, assignmentId } = assigned;
  await claim(t.engine.db, { runId, executionId, args: { assignment_id: assignmentId, lease_seconds: 60 } });
});

afterEach(() => t.close());

async function found() {
  const { rows } = await t.engine.db.pool.query(
    'SELECT r.state, e.phase FROM executions e JOIN runs r ON r.id = e.run_id WHERE e.id = $1',
    [assignment.executionId],
  );
  return rows[0];
}

test('a sandbox that was heard of again since its lease ran out is not given up', async () => {
  await endSandbox(t.engine, assignment.executionId, { kind: 'silent', message: 'Lost.' });
  expect(await found()).toEqual({ state: 'CLAIMED', phase: 'claimed' });
});

const stoppingSince = (minutes: number) =>
  t.engine.db.query(
    `UPDATE executions SET phase = 'stopping', stop_reason = 'ordered', stop_deadline = now() - make_interval(mins => $2)
     WHERE id = $1`,
    [assignment.executionId, minutes],
  );

test('a sandbox that is to end and whose worker is heard of is waited for, but not longer than ten minutes', async () => {
  await stoppingSince(9);
  await reconcile(t.engine);
  expect(await found()).toMatchObject({ phase: 'stopping' });
  await stoppingSince(11);
  await reconcile(t.engine);
  expect(await found()).toMatchObject({ phase: 'ended' });
});

test('a sandbox that is to end and whose worker is silent counts as ended at its deadline', async () => {
  await stoppingSince(1);
  await t.engine.db.query("UPDATE executions SET lease_until = now() - interval '1 second' WHERE id = $1", [
    assignment.executionId,
  ]);
  await reconcile(t.engine);
  expect(await found()).toMatchObject({ phase: 'ended' });
});
