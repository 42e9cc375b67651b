import { cancelRun } from '../../executions/cancel/cancel.ts';
import type { ExecutionDeps } from '../../executions/deps.ts';
import type { RunSession } from '../../executions/run-tokens/sessions.ts';
import { waitForRuns } from '../../executions/wait-for-runs.ts';
import { awaitChildren } from './await-children.ts';

/** PENDING lasts 30 s at most; an agent is answered before that. */
const pendingPatienceMs = 20_000;

/**
 * Cancels a child of the session's run, with all runs below it, and waits while it is PENDING. `not_found`: the run has started no such
 * run. `pending`: it still is.
 */
export async function cancelChild(
  deps: ExecutionDeps,
  session: RunSession,
  childRunId: string,
  signal: AbortSignal,
): Promise<'done' | 'not_found' | 'pending'> {
  const children = { runIds: [childRunId], until: 'all', waitMs: 0, signal } as const;
  if ((await awaitChildren(deps, session, children)) === 'not_found') return 'not_found';
  const wait = { runIds: () => [childRunId.toLowerCase()], waitMs: pendingPatienceMs, signal };
  const outcome = await waitForRuns(deps.notices, wait, async () => {
    const cancelled = await cancelRun(deps, childRunId, session);
    return cancelled === 'pending' ? undefined : cancelled;
  });
  return outcome === undefined ? 'pending' : 'done';
}
