import type { AgentInbox } from '@runyard/contract/agent-protocol';
import type { Statement } from '../store/database.ts';
import type { Engine } from './engine.ts';
import type { RunSession } from './sessions.ts';
import type { Phase } from './transition.ts';

/** Renews the lease: an agent that asks is alive, however silent its work. */
const touch: Statement = {
  name: 'touch_execution',
  text: `
    UPDATE executions SET agent_seen_at = clock_timestamp(),
      lease_until = CASE WHEN phase IN ('claimed', 'running')
        THEN greatest(lease_until, clock_timestamp() + make_interval(secs => $2::float8)) ELSE lease_until END
    WHERE id = $1 AND phase IN ('assigned', 'claimed', 'running', 'stopping')
    RETURNING phase, stop_reason`,
};

/**
 * What waits for the agent: at once where there is something, else when it comes, else empty after `waitMs`.
 * `superseded`: the execution has ended, its agent must stop.
 */
export async function waitForInbox(
  engine: Engine,
  session: RunSession,
  waitMs: number,
  signal: AbortSignal,
): Promise<AgentInbox | 'superseded'> {
  const deadline = performance.now() + waitMs;
  let wake = () => {};
  const stopListening = engine.notices.onRun(session.runId, () => wake());
  try {
    for (;;) {
      // Made before the read: a notice between the read and the wait is not lost.
      const woken = new Promise<void>((resolve) => {
        wake = resolve;
      });
      const [row] = await engine.db.query<{ phase: Phase; stop_reason: string | null }>(touch, [
        session.executionId,
        engine.timing.leaseSeconds,
      ]);
      if (!row) return 'superseded';
      if (row.phase === 'stopping' && row.stop_reason === 'ordered') return { items: [{ type: 'cancel' }] };
      const left = deadline - performance.now();
      if (left <= 0 || signal.aborted) return { items: [] };
      await wokenOrLate(woken, left, signal);
    }
  } finally {
    stopListening();
  }
}

/** Resolves when `woken` does, when `ms` have passed, or when `signal` is aborted. */
async function wokenOrLate(woken: Promise<void>, ms: number, signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, ms);
  signal.addEventListener('abort', () => resolve(), { once: true });
  await Promise.race([woken, promise]);
  clearTimeout(timer);
}
