import type { ErrorCode } from '@runyard/contract/wire/errors';
import type { ExecutionDeps } from '../deps.ts';
import { exceedBudget } from '../transitions/transitions.ts';

/** Ends a run in the middle of its work, because a budget is used up. Does nothing if the run has changed. */
export async function endOverBudget(
  deps: Pick<ExecutionDeps, 'db' | 'timing'>,
  { runId, executionId }: { readonly runId: string; readonly executionId: string },
  { code, message }: { readonly code: ErrorCode; readonly message: string },
): Promise<void> {
  await exceedBudget(deps.db, {
    runId,
    executionId,
    status: { message, code, retryable: false },
    payload: { message, error_code: code },
    args: { stop_seconds: deps.timing.cancelGraceSeconds },
  });
}
