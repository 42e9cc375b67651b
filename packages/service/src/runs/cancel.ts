import type { RunState } from '@runyard/contract/states';
import type { Statement } from '../store/database.ts';
import type { Engine } from './engine.ts';
import { cancelLive, cancelQueued } from './transitions.ts';

/**
 * `cancelled` 200; `already_ended` 400; `pending` 409, retryable, lasts 30 s at most; `not_supported` 422, self-hosted
 * and local runs; `not_found` 404.
 */
export type CancelOutcome = 'cancelled' | 'already_ended' | 'pending' | 'not_supported' | 'not_found';

const readCancellable: Statement = {
  name: 'read_cancellable',
  text: 'SELECT state, current_execution_id, worker_host, execution_location, source FROM runs WHERE id = $1',
};

interface CancellableRow {
  state: RunState;
  current_execution_id: string;
  worker_host: string | null;
  execution_location: string;
  source: string;
}

/** True for the kinds of runs that can be cancelled: hosted ones, not started by a GitHub Action. */
export function isRunTypeCancellable(
  run: Pick<CancellableRow, 'worker_host' | 'execution_location' | 'source'>,
): boolean {
  return run.worker_host === null && run.execution_location === 'REMOTE' && run.source !== 'GITHUB_ACTION';
}

/** Cancels the run in the record at once; its sandbox is ended within 5 s, or by the reconciler where its worker is gone. */
export async function cancelRun(engine: Engine, runId: string): Promise<CancelOutcome> {
  // A run that moves between read and write is read again; each move brings it nearer to an end.
  for (;;) {
    const [run] = await engine.db.query<CancellableRow>(readCancellable, [runId]);
    if (!run) return 'not_found';
    if (!isRunTypeCancellable(run)) return 'not_supported';
    const target = { runId, executionId: run.current_execution_id };
    switch (run.state) {
      case 'SUCCEEDED':
      case 'FAILED':
      case 'ERROR':
      case 'CANCELLED':
        return 'already_ended';
      case 'PENDING':
        return 'pending';
      case 'QUEUED':
        if (await cancelQueued(engine.db, target)) return 'cancelled';
        break;
      case 'CLAIMED':
      case 'INPROGRESS':
      case 'BLOCKED':
        if (await cancelLive(engine.db, { ...target, args: { stop_seconds: engine.timing.cancelGraceSeconds } }))
          return 'cancelled';
        break;
    }
  }
}
