import { beforeEach, expect, test } from 'vitest';
import { closeAtEnd } from '../../../../../../test/support/close-at-end.ts';
import { openTestExecutions, type TestExecutions } from '../../../../test/executions.ts';
import type { Assignment } from '../queue/assign.ts';
import { AttemptOver, lockAttempt } from './attempt.ts';
import { authenticateRunToken, type RunSession } from './sessions.ts';

let t: TestExecutions;
let session: RunSession;

beforeEach(async () => {
  t = closeAtEnd(await openTestExecutions());
  await t.newRun();
  const assignment = (await t.assign(await t.newConnection())) as Assignment;
  session = (await authenticateRunToken(t.deps.db, assignment.runToken)) as RunSession;
});

/**
 * Locks the attempt while another transaction has locked the run. That transaction first makes the change `change` to the run's execution
 * and then commits.
 */
async function lockBehind(change: string): Promise<string> {
  const { db } = t.deps;
  let locking: Promise<string> | undefined;
  await db.transaction(async (tx) => {
    await tx.query('SELECT FROM runs WHERE id = $1 FOR UPDATE', [session.runId]);
    locking ??= db.transaction((second) => lockAttempt(second, session));
    locking.catch(() => undefined);
    const isWaiting = "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%executions%'";
    while ((await db.query(isWaiting)).length === 0);
    await tx.query(`UPDATE executions SET ${change} WHERE id = $1`, [session.executionId]);
  });
  return (await locking) ?? '';
}

test('locking an attempt waits for a concurrent transaction and returns the phase that this transaction has set', async () => {
  expect(await lockBehind("phase = 'stopping'")).toBe('stopping');
});

test('locking an attempt fails if the transaction for which the lock waited has replaced the run token', async () => {
  await expect(lockBehind("token_hash = '\\x00'")).rejects.toThrow(AttemptOver);
});

test('locking an attempt fails if the transaction for which the lock waited has ended the execution', async () => {
  await expect(lockBehind("phase = 'ended'")).rejects.toThrow(AttemptOver);
});
