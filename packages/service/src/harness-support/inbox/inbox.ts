import type { AgentInbox, InboxItem } from '@runyard/contract/agent-protocol';
import type { Decision } from '@runyard/contract/approvals';
import type { RunMode } from '@runyard/contract/run-request';
import type { Engine } from '../../executions/engine.ts';
import { isAttempt } from '../../executions/run-tokens/attempt.ts';
import type { RunSession } from '../../executions/run-tokens/sessions.ts';
import { livePhases } from '../../executions/transitions/phases.ts';
import type { Phase } from '../../executions/transitions/transition.ts';
import { type AttachmentRow, agentAttachment, attachmentsOf } from '../../files/attachments/agent-view.ts';
import type { Statement } from '../../store/database/database.ts';

/** Renews the lease: an agent that asks is alive, however silent its work. Gives what the agent does not have yet. */
const touch: Statement = {
  name: 'touch_execution',
  text: `
    UPDATE executions e SET agent_seen_at = clock_timestamp(),
      lease_until = CASE WHEN phase IN ${livePhases}
        THEN greatest(lease_until, clock_timestamp() + make_interval(secs => $2::float8)) ELSE lease_until END
    WHERE e.id = $1 AND ${isAttempt('e', '$5')}
    RETURNING phase, stop_reason, interrupted_turn, finished_turns,
      (SELECT jsonb_agg(jsonb_build_object('id', w.id, 'position', w.position, 'message', w.message, 'mode', w.mode,
          'debug', w.is_debug, 'answers', w.answers, 'decision', w.decision,
          'attachments', ${attachmentsOf('a.followup_id = w.id')}) ORDER BY w.position)
       FROM (SELECT * FROM followups f WHERE f.run_id = $3 AND f.execution_id IS NULL AND f.position > $4
         AND (f.is_debug OR (SELECT r.state FROM runs r WHERE r.id = $3) <> 'FAILED') ORDER BY f.position LIMIT 20) w) AS followups`,
};

interface InboxRow {
  phase: Phase;
  stop_reason: string | null;
  interrupted_turn: number | null;
  finished_turns: number;
  followups:
    | {
        id: string;
        position: number;
        message: string;
        mode: RunMode | null;
        answers: string | null;
        decision: Decision | null;
        debug: boolean;
        attachments: AttachmentRow[];
      }[]
    | null;
}

/** What the agent has already. */
interface InboxPosition {
  /** Position of its last follow-up. */
  readonly after: number;
  /** Turn that it was told to end. */
  readonly interrupted: number;
}

function itemsOf(row: InboxRow, { interrupted }: InboxPosition): InboxItem[] {
  if (row.phase === 'stopping') return [{ type: row.stop_reason === 'ordered' ? 'cancel' : 'leave' }];
  const turn = row.interrupted_turn;
  const items: InboxItem[] = [];
  if (turn !== null && turn > interrupted && turn > row.finished_turns) items.push({ type: 'interrupt', turn });
  for (const { mode, attachments, answers, decision, debug, ...followup } of row.followups ?? []) {
    items.push({
      type: 'follow_up',
      ...followup,
      ...(mode ? { mode } : {}),
      ...(answers ? { answers } : {}),
      ...(decision ? { decision } : {}),
      ...(debug ? { debug } : {}),
      ...(attachments.length > 0 ? { attachments: attachments.map(agentAttachment) } : {}),
    });
  }
  return items;
}

/**
 * What waits for the agent: at once where there is something, else when it comes, else empty after `waitMs`.
 * `superseded`: the execution has ended, its agent must stop.
 */
export async function waitForInbox(
  engine: Engine,
  session: RunSession,
  position: InboxPosition,
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
      const [row] = await engine.db.query<InboxRow>(touch, [
        session.executionId,
        engine.timing.leaseSeconds,
        session.runId,
        position.after,
        session.tokenHash,
      ]);
      if (!row) return 'superseded';
      const items = itemsOf(row, position);
      if (items.length > 0) return { items };
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
