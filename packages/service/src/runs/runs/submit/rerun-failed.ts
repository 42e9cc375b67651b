/** Repeats the failed runs of a tree, each once. */
import { maxFailedReruns } from '@runyard/contract/limits';
import type { RerunFailedResponse } from '@runyard/contract/runs/run-request';
import type { Queryable } from '../../../platform/store/database/database.ts';
import { defineStatement, uuid } from '../../../platform/store/database/statement.ts';
import { isUuid } from '../../../platform/store/database/uuid.ts';
import { isBelow } from '../../executions/descendants.ts';
import { isFreshCheck } from '../../executions/fresh-checks/fresh-checks.ts';
import { discardRun, type PreparedRun, prepareRun, type RunSubmission, type SubmitDeps } from './prepare.ts';
import { writeRun } from './submit.ts';
import { reasonOf, refusedChild } from './translate.ts';

/** A leaf has no child runs except runs of checks. Runs that were repeated, or whose retry is planned, are left out. */
const findLeaves = defineStatement({
  name: 'find_failed_leaves',
  text: `
    WITH tree AS MATERIALIZED (
      SELECT c.id, c.parent_run_id, c.state, c.rerun_of, c.retry_of FROM runs c WHERE c.id = $1
      UNION ALL
      SELECT c.id, c.parent_run_id, c.state, c.rerun_of, c.retry_of FROM runs root JOIN runs c ON ${isBelow('c', 'root')}
      WHERE root.id = $1 AND NOT ${isFreshCheck('c.id')}
    )
    SELECT t.id FROM tree t WHERE t.state IN ('FAILED', 'ERROR')
      AND NOT EXISTS (SELECT FROM tree c WHERE c.parent_run_id = t.id)
      AND NOT EXISTS (SELECT FROM tree c WHERE c.rerun_of = t.id)
      AND NOT EXISTS (SELECT FROM tree c WHERE c.retry_of = t.id)
      AND NOT EXISTS (SELECT FROM run_retries p WHERE p.run_id = t.id AND p.handled_at IS NULL)
      AND NOT EXISTS (SELECT FROM failed_reruns d WHERE d.run_id = t.id)
    ORDER BY t.id LIMIT ${maxFailedReruns + 1}`,
  row: { id: uuid },
});

const take = defineStatement({
  name: 'take_failed_rerun',
  text: 'INSERT INTO failed_reruns (run_id, rerun_id) VALUES ($1, $2) ON CONFLICT DO NOTHING RETURNING run_id',
  row: { run_id: uuid },
});

/** Another request has repeated the run meanwhile, so the transaction is rolled back. */
class AlreadyRepeated extends Error {}

/** Writes the new run, and marks the failed one as repeated, in one transaction. Returns the reason if it cannot be written. */
const write = async (
  tx: Queryable,
  runId: string,
  prepared: PreparedRun,
): Promise<'written' | { readonly reason: string }> => {
  const written = await writeRun(tx, prepared);
  if (written.kind !== 'written') return { reason: refusedChild(written.reason).message };
  if ((await tx.query(take, [runId, prepared.run.id])).length === 0) throw new AlreadyRepeated();
  return 'written';
};

/**
 * Repeats the failed leaves of a run's tree below their parents, each in a transaction of its own. A run that cannot be repeated does not stop
 * the others. The caller has checked that the run exists in the team.
 */
export async function rerunFailed(
  deps: SubmitDeps,
  submission: Pick<RunSubmission, 'actor' | 'by' | 'source'>,
  runId: string,
): Promise<RerunFailedResponse> {
  const { db } = deps.executionDeps;
  const leaves = isUuid(runId) ? await db.query(findLeaves, [runId]) : [];
  const answer: RerunFailedResponse = { reruns: [], refused: [], has_more: leaves.length > maxFailedReruns };
  for (const { id } of leaves.slice(0, maxFailedReruns)) {
    const prepared = await prepareRun(deps, { ...submission, request: { rerunOf: id, instead: {} } });
    if (prepared.kind !== 'prepared') {
      answer.refused.push({ run_id: id, reason: reasonOf(prepared) });
      continue;
    }
    const outcome = await db
      .transaction((tx) => write(tx, id, prepared))
      .catch((error: unknown) => {
        if (error instanceof AlreadyRepeated) return undefined;
        throw error;
      });
    if (outcome === 'written') answer.reruns.push({ run_id: id, rerun_run_id: prepared.run.id });
    else await discardRun(deps, prepared);
    if (typeof outcome === 'object') answer.refused.push({ run_id: id, reason: outcome.reason });
  }
  return answer;
}
