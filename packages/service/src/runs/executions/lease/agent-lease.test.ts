import { beforeEach, expect, test } from 'vitest';
import { closeAtEnd } from '../../../../../../test/support/close-at-end.ts';
import { openTestExecutions, type TestExecutions } from '../../../../test/executions.ts';
import { readTaskRow } from '../../harness-support/task/read-task-row.ts';
import type { Assignment } from '../queue/assign.ts';
import { AttemptOver } from '../run-tokens/attempt.ts';
import { authenticateRunToken, type RunSession } from '../run-tokens/sessions.ts';
import { requeue } from '../transitions/transitions.ts';
import { claimForAgent } from './agent-lease.ts';

let t: TestExecutions;
let assignment: Assignment;
let session: RunSession;

beforeEach(async () => {
  t = closeAtEnd(await openTestExecutions());
  await t.newRun();
  assignment = (await t.assign(await t.newConnection())) as Assignment;
  session = (await authenticateRunToken(t.deps.db, assignment.runToken)) as RunSession;
});

const takeBack = () => {
  const { runId, executionId, assignmentId } = assignment;
  return requeue(t.deps.db, { runId, executionId, args: { assignment_id: assignmentId } });
};
const readRun = async () =>
  (
    await t.deps.db.query<{ state: string; phase: string; leases: boolean; claims: number }>(
      `SELECT r.state, e.phase, e.lease_until > clock_timestamp() AS leases,
         (SELECT count(*) FROM run_events v WHERE v.run_id = r.id AND v.event_type = 'oz_run_claimed') AS claims
       FROM runs r JOIN executions e ON e.id = r.current_execution_id WHERE r.id = $1`,
      [assignment.runId],
    )
  )[0];

test("an agent's call claims the assignment once, and no process takes the assignment back afterwards", async () => {
  await claimForAgent(t.deps, session);
  await claimForAgent(t.deps, session);
  expect(await readRun()).toEqual({ state: 'CLAIMED', phase: 'claimed', leases: true, claims: 1 });
  expect(await takeBack()).toBe(false);
});

test('the service refuses an agent whose assignment was taken back', async () => {
  expect(await takeBack()).toBe(true);
  await claimForAgent(t.deps, session);
  await expect(readTaskRow(t.deps.db, session)).rejects.toThrow(AttemptOver);
  expect(await readRun()).toMatchObject({ state: 'QUEUED', phase: 'queued', claims: 0 });
});
