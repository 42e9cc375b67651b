import { isSettled } from '@runyard/contract/run-states';
import type { Engine } from '../../executions/engine.ts';
import { markAwaiting, unmarkAwaiting } from '../../executions/queue/awaiting.ts';
import type { Attempt } from '../../executions/run-tokens/attempt.ts';
import { readChildStates } from './read-children.ts';

/** Time between two calls of an agent that waits longer than one call; after it the execution holds a slot again. */
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
 * Meanwhile the session's execution holds no slot. `not_found`: one of the ids is no child of the run.
 */
export async function awaitChildren(
  engine: Engine,
  session: Attempt,
  wait: Wait,
): Promise<'settled' | 'waiting' | 'not_found'> {
  const deadline = performance.now() + wait.waitMs;
  let woken = Promise.withResolvers<void>();
  const wake = () => woken.resolve();
  const listening = new Map<string, () => void>();
  wait.signal.addEventListener('abort', wake, { once: true });
  let isMarked = false;
  try {
    for (;;) {
      // Made before the read, so that a notice between the read and the wait is not lost.
      woken = Promise.withResolvers<void>();
      const children = await readChildStates(engine.db, session.runId, wait.runIds);
      if (!children) return 'not_found';
      const settled = children.filter(({ state }) => isSettled(state)).length;
      if (settled === children.length || (wait.until === 'any' && settled > 0)) return 'settled';
      const left = deadline - performance.now();
      if (left <= 0 || wait.signal.aborted) return 'waiting';
      const unheard = children.filter(({ id }) => !listening.has(id));
      for (const { id } of unheard) listening.set(id, engine.notices.onRun(id, wake));
      // Read again: a child may have changed before its listener was added.
      if (unheard.length > 0) continue;
      if (!isMarked) await markAwaiting(engine.db, session, wait.waitMs + betweenCallsMs);
      isMarked = true;
      const timer = setTimeout(wake, left);
      await woken.promise;
      clearTimeout(timer);
    }
  } finally {
    for (const stop of listening.values()) stop();
    wait.signal.removeEventListener('abort', wake);
    // After the full wait the agent usually asks again, so the mark stays for the time between two calls.
    if (isMarked && (wait.signal.aborted || performance.now() < deadline)) await unmarkAwaiting(engine.db, session);
  }
}
