import { RunState } from '@runyard/contract/runs/states';
import { beforeEach, expect, test } from 'vitest';
import { closeAtEnd } from '../../../../../../test/support/close-at-end.ts';
import { openTestExecutions } from '../../../../test/executions.ts';
import type { Transition } from './transition.ts';
import {
  block,
  cancelBlocked,
  cancelLive,
  cancelQueued,
  claim,
  err,
  errEnded,
  expireQueued,
  expireRun,
  expireSetup,
  fail,
  failSetup,
  failUnfit,
  requeue,
  resume,
  start,
  succeed,
} from './transitions.ts';

const t = closeAtEnd(await openTestExecutions({ limit: 10_000 }));
const connection = await t.newConnection();
// Removes executions that an earlier test left in the queue, so that they are not assigned.
beforeEach(() => t.deps.db.query("UPDATE executions SET phase = 'ended'", []));

/** For each transition: the states in which the contract allows it, and the new state. */
const contract: readonly (readonly [string, Transition, readonly RunState[], RunState])[] = [
  ['claim', claim, ['PENDING'], 'CLAIMED'],
  ['requeue', requeue, ['PENDING'], 'QUEUED'],
  ['start', start, ['CLAIMED'], 'INPROGRESS'],
  ['succeed', succeed, ['INPROGRESS'], 'SUCCEEDED'],
  ['block', block, ['INPROGRESS'], 'BLOCKED'],
  ['resume', resume, ['SUCCEEDED', 'BLOCKED'], 'INPROGRESS'],
  ['fail', fail, ['CLAIMED', 'INPROGRESS', 'BLOCKED'], 'FAILED'],
  ['failSetup', failSetup, ['CLAIMED', 'INPROGRESS'], 'FAILED'],
  ['err', err, ['CLAIMED', 'INPROGRESS', 'BLOCKED'], 'ERROR'],
  ['errEnded', errEnded, ['CLAIMED', 'INPROGRESS'], 'ERROR'],
  ['failUnfit', failUnfit, ['CLAIMED'], 'FAILED'],
  ['expireSetup', expireSetup, ['CLAIMED'], 'ERROR'],
  ['expireRun', expireRun, ['INPROGRESS'], 'ERROR'],
  ['expireQueued', expireQueued, ['QUEUED'], 'ERROR'],
  ['cancelQueued', cancelQueued, ['QUEUED'], 'CANCELLED'],
  ['cancelLive', cancelLive, ['CLAIMED', 'INPROGRESS'], 'CANCELLED'],
  ['cancelBlocked', cancelBlocked, ['BLOCKED'], 'CANCELLED'],
];

const args = { lease_seconds: 60, idle_seconds: 60, stop_seconds: 5, cascades: false, request: { request_id: 'r' } };

async function assigned() {
  await t.newRun();
  const assignment = await t.assign(connection);
  if (!assignment) throw new Error('nothing was assigned');
  // An agent that waits for a follow-up has already ended a turn.
  await t.deps.db.query('UPDATE executions SET finished_at = clock_timestamp() WHERE id = $1', [
    assignment.executionId,
  ]);
  return assignment;
}

async function recordOf(runId: string) {
  const { rows } = await t.deps.db.pool.query(
    `SELECT r.state, r.event_seq, e.phase, (SELECT count(*)::int FROM run_events WHERE run_id = r.id) AS events
     FROM runs r JOIN executions e ON e.id = r.current_execution_id WHERE r.id = $1`,
    [runId],
  );
  return rows[0];
}

test.each(contract)(
  '%s changes a run in the allowed states, and in no other state',
  async (_name, change, from, to) => {
    for (const state of RunState.options) {
      const { runId, executionId, assignmentId } = await assigned();
      await t.deps.db.pool.query('UPDATE runs SET state = $2 WHERE id = $1', [runId, state]);
      const before = await recordOf(runId);
      const isMade = await change(t.deps.db, { runId, executionId, args: { ...args, assignment_id: assignmentId } });
      expect({ state, isMade }).toEqual({ state, isMade: from.includes(state) });
      const after = await recordOf(runId);
      if (isMade) expect(after).toMatchObject({ state: to, events: before.events + 1 });
      else expect(after).toEqual(before);
    }
  },
);

test.each(contract)(
  '%s changes nothing if the execution is not the current execution of the run',
  async (_name, change, [state]) => {
    const { runId, assignmentId } = await assigned();
    const { executionId: ofAnother } = await assigned();
    await t.deps.db.pool.query('UPDATE runs SET state = $2 WHERE id = $1', [runId, state]);
    const before = await recordOf(runId);
    const input = { runId, executionId: ofAnother, args: { ...args, assignment_id: assignmentId } };
    expect(await change(t.deps.db, input)).toBe(false);
    expect(await recordOf(runId)).toEqual(before);
  },
);

test.each([
  ['claim', claim],
  ['requeue', requeue],
])('%s changes nothing if the assignment was taken back', async (_name, change) => {
  const first = await assigned();
  const { runId, executionId } = first;
  const taken = { runId, executionId, args: { ...args, assignment_id: first.assignmentId } };
  expect(await requeue(t.deps.db, taken)).toBe(true);
  const second = await t.assign(connection);
  expect(second).toMatchObject({ runId, executionId });
  const before = await recordOf(runId);
  expect(await change(t.deps.db, taken)).toBe(false);
  expect(await recordOf(runId)).toEqual(before);
});
