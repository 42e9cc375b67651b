import { isTerminal } from '@runyard/contract/runs/run-states';
import { cancelRun } from '../../../runs/executions/cancel/cancel.ts';
import { cancelBelow } from '../../../runs/executions/cancel/cancel-descendants.ts';
import type { ExecutionDeps } from '../../../runs/executions/deps.ts';
import type { Author } from '../../../team/access/audit/record.ts';
import { findTask } from './read.ts';
import { cancelStage, type TaskPlace } from './write.ts';

/** `not_found` 404; `pending` 409, retryable; `not_supported` 422: the run is self-hosted, local or of a GitHub Action. */
export type CancelTaskOutcome = 'cancelled' | 'not_found' | 'pending' | 'not_supported';

/**
 * Cancels the current run of a task, and all live runs below it, and writes the stage. If the process dies before it writes the stage,
 * readers see CANCELLED all the same, because the run is. If the run has ended, only the runs below it are cancelled.
 */
export async function cancelTask(deps: ExecutionDeps, by: Author, place: TaskPlace): Promise<CancelTaskOutcome> {
  const task = await findTask(deps.db, { teamId: by.teamId, factoryUid: place.factoryUid }, place.taskUid);
  if (!task) return 'not_found';
  const { current_id: runId, current_state: state } = task;
  const outcome = runId === null ? 'not_found' : await cancelRun(deps, runId, by);
  const hasEnded = outcome === 'already_ended' || (outcome === 'not_supported' && state !== null && isTerminal(state));
  if (!hasEnded && (outcome === 'pending' || outcome === 'not_supported')) return outcome;
  if (hasEnded && runId !== null) await cancelBelow(deps, runId);
  // The cancel of the run is in the audit log already.
  const isRecorded = outcome === 'cancelled' || outcome === 'wait_ended';
  return (await cancelStage(deps.db, by, place, { isRecorded })) ? 'cancelled' : 'not_found';
}
