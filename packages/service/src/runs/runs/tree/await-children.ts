import { isSettled } from '@runyard/contract/runs/run-states';
import type { ExecutionDeps } from '../../executions/deps.ts';
import { markAwaiting, unmarkAwaiting } from '../../executions/queue/awaiting.ts';
import type { Attempt } from '../../executions/run-tokens/attempt.ts';
import { waitForRuns } from '../../executions/wait-for-runs.ts';

import { readChildStates } from './read-children.ts';

/** Time between two calls of an agent that waits longer than one call. After it the execution holds a slot again. */
const betweenCallsMs = 10_000;

interface Wait {
  /** Absent: all children. */
  readonly runIds?: readonly string[] | undefined;
  readonly until: 'all' | 'any';
  readonly waitMs: number;
  /** Aborted when the caller's connection closes. */
  readonly signal: AbortSignal;
}

/**
 * Waits until child runs of the session's run have ended or are BLOCKED (`settled`), for `waitMs` at most (`waiting`).
 * Meanwhile the session's execution holds no slot, if a slot helps one of them. `not_found`: one of the ids is no child of the run.
 */
export async function awaitChildren(
  deps: ExecutionDeps,
  session: Attempt,
  wait: Wait,
): Promise<'settled' | 'waiting' | 'not_found'> {
  const deadline = performance.now() + wait.waitMs;
  let childIds: readonly string[] = [];
  let unsettledIds: readonly string[] = [];
  let isMarked = false;
  const waiting = {
    runIds: () => childIds,
    waitMs: wait.waitMs,
    signal: wait.signal,
    beforePause: async () => {
      isMarked ||= await markAwaiting(deps.db, session, wait.waitMs + betweenCallsMs, unsettledIds);
    },
  };
  try {
    const outcome = await waitForRuns(deps.notices, waiting, async () => {
      const children = await readChildStates(deps.db, session.runId, wait.runIds);
      if (!children) return 'not_found';
      childIds = children.map(({ id }) => id);
      unsettledIds = children.filter(({ state }) => !isSettled(state)).map(({ id }) => id);
      const settled = children.length - unsettledIds.length;
      return settled === children.length || (wait.until === 'any' && settled > 0) ? 'settled' : undefined;
    });
    return outcome ?? 'waiting';
  } finally {
    // After the full wait the agent usually calls again, so the mark stays for the time between two calls.
    if (isMarked && (wait.signal.aborted || performance.now() < deadline)) await unmarkAwaiting(deps.db, session);
  }
}
