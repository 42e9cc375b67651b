import { beforeEach, describe, expect, test } from 'vitest';
import { closeAtEnd } from '../../../../../../test/support/close-at-end.ts';
import { openTestExecutions, type TestExecutions } from '../../../../test/executions.ts';
import type { Queryable } from '../../../platform/store/database/database.ts';
import type { Assignment } from '../queue/assign.ts';
import { block, claim, resume, start } from '../transitions/transitions.ts';
import { reconcile } from './reconcile.ts';
import { endSandbox } from './sandbox-end.ts';

let t: TestExecutions;
let assignment: Assignment;

beforeEach(async () => {
  t = closeAtEnd(await openTestExecutions());
  await t.newRun();
  const assigned = await t.assign(await t.newConnection());
  if (!assigned) throw new Error('nothing was assigned');
  assignment = assigned;
  const { runId, executionId, assignmentId } = assigned;
  await claim(t.deps.db, { runId, executionId, args: { assignment_id: assignmentId, lease_seconds: 60 } });
});

async function found() {
  const { rows } = await t.deps.db.pool.query(
    'SELECT r.state, e.phase FROM executions e JOIN runs r ON r.id = e.run_id WHERE e.id = $1',
    [assignment.executionId],
  );
  return rows[0];
}

test('the reconciler does not end a sandbox whose lease was renewed after the sweep had found the sandbox', async () => {
  await endSandbox(t.deps, assignment.executionId, { kind: 'silent', message: 'Lost.' });
  expect(await found()).toEqual({ state: 'CLAIMED', phase: 'claimed' });
});

const stoppingSince = (minutes: number) =>
  t.deps.db.query(
    `UPDATE executions SET phase = 'stopping', stop_reason = 'ordered', stop_deadline = now() - make_interval(mins => $2)
     WHERE id = $1`,
    [assignment.executionId, minutes],
  );

test('the reconciler waits for the end of a stopping sandbox while the worker sends heartbeats, but at most ten minutes', async () => {
  await stoppingSince(9);
  await reconcile(t.deps);
  expect(await found()).toMatchObject({ phase: 'stopping' });
  await stoppingSince(11);
  await reconcile(t.deps);
  expect(await found()).toMatchObject({ phase: 'ended' });
});

test('the reconciler ends a stopping execution at its deadline if the worker sends nothing', async () => {
  await stoppingSince(1);
  await t.deps.db.query("UPDATE executions SET lease_until = now() - interval '1 second' WHERE id = $1", [
    assignment.executionId,
  ]);
  await reconcile(t.deps);
  expect(await found()).toMatchObject({ phase: 'ended' });
});

test('the reconciler handles all other executions even if it fails for one execution', async () => {
  await t.newRun();
  const other = await t.assign(await t.newConnection());
  await t.deps.db.query("UPDATE executions SET claim_deadline = now() - interval '1 second' WHERE id = $1", [
    other?.executionId,
  ]);
  await t.deps.db.query(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE ''refused''; END'`);
  await t.deps.db.query(
    `CREATE TRIGGER refuse BEFORE UPDATE ON executions FOR EACH ROW WHEN (NEW.id = '${other?.executionId}') EXECUTE FUNCTION refuse()`,
  );
  await stoppingSince(11);
  await reconcile(t.deps);
  expect(await found()).toMatchObject({ phase: 'ended' });
});

describe('the reconciler that must wait for a locked row', () => {
  /**
   * Starts the reconciler while a transaction has locked the row. When the reconciler waits for the lock, the transaction calls `meanwhile`
   * and commits.
   */
  async function reconcileDuring(table: 'runs' | 'executions', meanwhile: (tx: Queryable) => Promise<unknown>) {
    let reconciled: Promise<void> | undefined;
    await t.deps.db.transaction(async (tx) => {
      const id = table === 'runs' ? assignment.runId : assignment.executionId;
      await tx.query(`SELECT FROM ${table} WHERE id = $1 FOR UPDATE`, [id]);
      reconciled = reconcile(t.deps);
      // Use another connection than `tx`, because the view `pg_stat_activity` does not change within a transaction.
      const waiting = () =>
        t.deps.db.query(`SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`);
      await expect.poll(waiting).toHaveLength(1);
      await meanwhile(tx);
    });
    await reconciled;
  }

  const set = (assignments: string) =>
    t.deps.db.query(`UPDATE executions SET ${assignments} WHERE id = $1`, [assignment.executionId]);
  const passed = (column: string) => set(`${column} = now() - interval '1 minute'`);

  test('does not end a run that has got a new deadline meanwhile', async () => {
    const target = { runId: assignment.runId, executionId: assignment.executionId };
    await start(t.deps.db, target);
    await passed('deadline_at');
    await reconcileDuring('runs', async (tx) => {
      const request = { request_id: 'q', kind: 'question', title: 'Which?', asked_at: '2026-01-02T03:04:05.000Z' };
      expect(await block(tx, { ...target, args: { request, idle_seconds: 600 } })).toBe(true);
      expect(await resume(tx, target)).toBe(true);
    });
    expect(await found()).toEqual({ state: 'INPROGRESS', phase: 'running' });
    await passed('deadline_at');
    await reconcile(t.deps);
    expect(await found()).toEqual({ state: 'ERROR', phase: 'stopping' });
  });

  test('does not end an overdue setup whose agent has begun its turn meanwhile', async () => {
    await passed('deadline_at');
    await reconcileDuring('runs', (tx) => start(tx, { runId: assignment.runId, executionId: assignment.executionId }));
    expect(await found()).toEqual({ state: 'INPROGRESS', phase: 'running' });
  });

  test('does not take back an assignment whose claim deadline was extended meanwhile', async () => {
    await t.deps.db.query("UPDATE runs SET state = 'PENDING', assignment_id = $2 WHERE id = $1", [
      assignment.runId,
      assignment.assignmentId,
    ]);
    await set(
      "phase = 'assigned', lease_until = NULL, deadline_at = NULL, claim_deadline = now() - interval '1 minute'",
    );
    await reconcileDuring('runs', (tx) =>
      tx.query("UPDATE executions SET claim_deadline = now() + interval '1 minute' WHERE id = $1", [
        assignment.executionId,
      ]),
    );
    expect(await found()).toEqual({ state: 'PENDING', phase: 'assigned' });
    await passed('claim_deadline');
    await reconcile(t.deps);
    expect(await found()).toEqual({ state: 'QUEUED', phase: 'queued' });
  });

  test('does not end a stopping execution if an upload has extended its stop deadline meanwhile', async () => {
    await stoppingSince(1);
    await passed('lease_until');
    await reconcileDuring('executions', (tx) =>
      tx.query("UPDATE executions SET stop_deadline = now() + interval '15 seconds' WHERE id = $1", [
        assignment.executionId,
      ]),
    );
    expect(await found()).toMatchObject({ phase: 'stopping' });
  });

  test('locks the row of a run before the row of its execution', async () => {
    await stoppingSince(11);
    await reconcileDuring('runs', async (tx) => {
      // This query fails at once if the reconciler has locked the execution's row.
      await tx.query('SELECT FROM executions WHERE id = $1 FOR UPDATE NOWAIT', [assignment.executionId]);
    });
    expect(await found()).toMatchObject({ phase: 'ended' });
  });
});
