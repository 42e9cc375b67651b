import { expect, test } from 'vitest';
import { openTestExecutions } from '../../../../test/executions.ts';
import { retryOrError } from './relaunch.ts';
import { claim } from './transitions.ts';

test('a run with a platform error is tried again after 1, 5 and 25 s, each ± 20 %, and then ends in ERROR', async () => {
  const t = await openTestExecutions({ timing: { retryDelaysMs: [1_000, 5_000, 25_000] } });
  const { db } = t.deps;
  try {
    const runId = await t.newRun();
    const connection = await t.newConnection();
    const failOnce = async (random: number) => {
      await db.query('UPDATE executions SET available_at = now() WHERE run_id = $1', [runId]);
      const assignment = await t.assign(connection);
      if (!assignment) throw new Error('nothing was assigned');
      const { executionId, assignmentId } = assignment;
      await claim(db, { runId, executionId, args: { assignment_id: assignmentId, lease_seconds: 60 } });
      const status = { message: 'No sandbox', code: 'resource_unavailable' } as const;
      const deps = { ...t.deps, random: () => random };
      const outcome = await retryOrError(deps, db, { runId, executionId, status, sandboxGone: true });
      const [run] = await db.query<{ state: string; wait: number }>(
        `SELECT r.state, extract(epoch FROM e.available_at - r.updated_at)::float8 AS wait
         FROM runs r JOIN executions e ON e.id = r.current_execution_id WHERE r.id = $1`,
        [runId],
      );
      return { outcome, ...run };
    };
    for (const [random, wait] of [
      [0, 0.8],
      [0.5, 5],
      [1, 30],
    ] as const) {
      expect(await failOnce(random)).toEqual({ outcome: 'retried', state: 'QUEUED', wait: expect.closeTo(wait, 0) });
    }
    expect(await failOnce(0.5)).toMatchObject({ outcome: 'errored', state: 'ERROR' });
    const [run] = await db.query('SELECT status_message, retryable FROM runs WHERE id = $1', [runId]);
    expect(run).toEqual({ status_message: 'No sandbox (after 4 tries)', retryable: true });
  } finally {
    await t.close();
  }
});
