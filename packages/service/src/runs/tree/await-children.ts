/** An agent that waits for runs below its own. Meanwhile it holds no slot: else those that it waits for might never get one. */

import { isSettled } from '@runyard/contract/run-states';
import { queueChannel, runChannel } from '../../executions/channels.ts';
import type { Engine } from '../../executions/engine.ts';
import type { Attempt } from '../../executions/run-tokens/attempt.ts';
import type { Queryable, Statement } from '../../store/database/database.ts';
import { readChildStates } from './read-children.ts';

/** From one call of an agent that goes on waiting to the next; after it the slot counts again. */
const betweenCallsMs = 10_000;

/** Whoever assigns is told where this is new. */
const mark: Statement = {
  name: 'mark_awaiting',
  text: `
    UPDATE executions e SET awaiting_until = clock_timestamp() + make_interval(secs => $2::float8 / 1000) FROM executions before
    WHERE e.id = $1 AND e.token_hash = $3 AND before.id = e.id AND e.phase IN ('claimed', 'running')
    RETURNING CASE WHEN before.awaiting_until > clock_timestamp() THEN NULL
      ELSE pg_notify('${runChannel}', e.run_id::text)::text || pg_notify('${queueChannel}', e.pool)::text END`,
};

/** The execution holds no slot for `forMs`: its agent does nothing but wait for others. */
export async function markAwaiting(
  db: Queryable,
  { executionId, tokenHash }: Pick<Attempt, 'executionId' | 'tokenHash'>,
  forMs: number,
): Promise<void> {
  await db.query(mark, [executionId, forMs, tokenHash]);
}

const unmark: Statement = {
  name: 'unmark_awaiting',
  text: `
    UPDATE executions SET awaiting_until = NULL WHERE id = $1 AND token_hash = $2 AND awaiting_until IS NOT NULL
    RETURNING pg_notify('${runChannel}', run_id::text)`,
};

interface Wait {
  /** Absent: all children. */
  readonly runIds?: readonly string[] | undefined;
  readonly until: 'all' | 'any';
  readonly waitMs: number;
  /** Aborts when nobody waits for the answer any more. */
  readonly signal: AbortSignal;
}

/**
 * Resolves when the runs have ended or are BLOCKED (`settled`), or after `waitMs` (`waiting`). `not_found`: one of them is
 * no child of the session's run.
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
      // Made before the read: a notice between the read and the wait is not lost.
      woken = Promise.withResolvers<void>();
      const children = await readChildStates(engine.db, session.runId, wait.runIds);
      if (!children) return 'not_found';
      const settled = children.filter(({ state }) => isSettled(state)).length;
      if (settled === children.length || (wait.until === 'any' && settled > 0)) return 'settled';
      const left = deadline - performance.now();
      if (left <= 0 || wait.signal.aborted) return 'waiting';
      const unheard = children.filter(({ id }) => !listening.has(id));
      for (const { id } of unheard) listening.set(id, engine.notices.onRun(id, wake));
      // What moved before someone listened is read again.
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
    // The agent goes on; where it only asks again, it is marked again.
    if (isMarked && (wait.signal.aborted || performance.now() < deadline))
      await engine.db.query(unmark, [session.executionId, session.tokenHash]);
  }
}
