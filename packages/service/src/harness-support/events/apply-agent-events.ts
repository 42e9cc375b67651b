import type { AgentEvent } from '@runyard/contract/agent-protocol';
import { readLastStepId } from '../../conversations/last-step.ts';
import { blockRun } from '../../executions/debug-window/block.ts';
import type { ExecutionDeps } from '../../executions/deps.ts';
import { keepAgentProgress } from '../../executions/lease/keep-agent-progress.ts';
import { isAttempt } from '../../executions/run-tokens/attempt.ts';
import type { RunSession } from '../../executions/run-tokens/sessions.ts';
import { countDropped } from '../../executions/timeline/count-dropped.ts';
import { storeAgentEvents } from '../../executions/timeline/store-agent-events.ts';
import { storeTranscript } from '../../executions/timeline/store-transcript.ts';
import type { Phase } from '../../executions/transitions/transition.ts';
import { claim, start } from '../../executions/transitions/transitions.ts';
import { beginCheckpoint, keepUnchangedCheckpoint } from '../../executions/workspace/checkpoints.ts';
import { redactorOf } from '../../redaction/agent-text.ts';
import type { HeldTexts } from '../../redaction/held-texts.ts';
import { takeFollowup } from '../../runs/follow-ups/take-followups.ts';
import type { Queryable } from '../../store/database/database.ts';
import { defineStatement, float, integer, json, nullable, text, uuid } from '../../store/database/statement.ts';
import { fullConversationRows } from './limit-reports.ts';
import { type EventAction, planAgentEvents } from './plan-agent-events.ts';

const lockRun = defineStatement({
  name: 'lock_run',
  text: `
    SELECT event_bytes, transcript_bytes, dropped_events, dropped_lines, assignment_id, (config->>'idle_timeout_minutes')::float8 * 60 AS idle_seconds
    FROM runs WHERE id = $1 FOR UPDATE`,
  row: {
    event_bytes: integer,
    transcript_bytes: integer,
    dropped_events: integer,
    dropped_lines: integer,
    assignment_id: nullable(uuid),
    /** NULL if the run's configuration does not set it. */
    idle_seconds: nullable(float),
  },
});

/** Runs after `lockRun`, in a statement of its own, so that it sees the changes that the lock waited for. */
const readExecution = defineStatement({
  name: 'read_execution_of_agent',
  text: `SELECT e.phase, e.last_agent_seq, e.redaction_tails FROM executions e WHERE e.id = $1 AND ${isAttempt('e', '$2')}`,
  row: { phase: text<Phase>(), last_agent_seq: integer, redaction_tails: json<HeldTexts>() },
});

/** `superseded`: the execution has ended, or belongs to another assignment; the agent must stop. */
export type ApplyOutcome = { readonly acknowledged: number } | 'superseded';

/**
 * Applies the events that were not applied before, in order, in one transaction with the acknowledgement. So an event that is
 * sent twice counts once. Events behind a gap are not applied: the agent sends them again. After a cancel the agent's last
 * events are still stored.
 */
export async function applyAgentEvents(
  deps: ExecutionDeps,
  session: RunSession,
  events: readonly AgentEvent[],
): Promise<ApplyOutcome> {
  const { runId, executionId } = session;
  return await deps.db.transaction(async (tx) => {
    const [run] = await tx.query(lockRun, [runId]);
    const [execution] = await tx.query(readExecution, [executionId, session.tokenHash]);
    if (!run || !execution) return 'superseded';
    const { phase, last_agent_seq: lastSeq, redaction_tails: heldTexts } = execution;
    const plan = planAgentEvents({
      events,
      execution: { phase, lastSeq, heldTexts },
      run,
      limits: deps.limits,
      redactor: redactorOf(deps, session),
      now: new Date(),
    });
    if (plan === undefined) return { acknowledged: lastSeq };
    const { acknowledged, transcript, added } = plan;
    for (const action of plan.actions) await carryOut(deps, tx, { session, idleSeconds: run.idle_seconds }, action);
    if (transcript !== '') {
      const chunk = { lastSeq: acknowledged, lines: transcript, countedBytes: added.transcriptBytes };
      await storeTranscript(tx, session, chunk);
    }
    await countDropped(tx, runId, added);
    await keepAgentProgress(tx, {
      executionId,
      lastSeq: acknowledged,
      heldTexts: plan.heldTexts,
      transcriptBytes: Buffer.byteLength(transcript),
      leaseSeconds: phase === 'stopping' ? 0 : deps.timing.leaseSeconds,
    });
    return { acknowledged };
  });
}

/** Carries out one action of a plan. */
async function carryOut(
  deps: ExecutionDeps,
  tx: Queryable,
  { session, idleSeconds }: { readonly session: RunSession; readonly idleSeconds: number | null },
  action: EventAction,
): Promise<void> {
  const { runId, executionId } = session;
  switch (action.kind) {
    case 'store_events':
      return await storeAgentEvents(tx, session, action.rows, action.bytes);
    case 'report_full_conversation': {
      const stepId = action.stepId ?? (await readLastStepId(tx, runId));
      const rows = fullConversationRows(deps.limits, { occurredAt: action.occurredAt, stepId });
      const placed = rows.map((row, position) => JSON.stringify({ position, ...row }));
      return await storeAgentEvents(tx, session, placed, 0);
    }
    case 'take_follow_up':
      return await takeFollowup(tx, session, action.followUpId);
    case 'start_run':
      return await startRun(deps, tx, session, action);
    case 'mark_checkpoint': {
      const { number, state, turn, done_blocks: done = 0 } = action.checkpoint;
      if (state === 'begun') return await beginCheckpoint(tx, { executionId, number, done });
      return await keepUnchangedCheckpoint(tx, { executionId, number, turn });
    }
    case 'block_run':
      await blockRun(deps, tx, { runId, executionId, request: action.request, idleSeconds });
  }
}

/** Starts the run. An agent whose event arrives before its worker's claim proves that the worker took the assignment. */
async function startRun(
  deps: ExecutionDeps,
  tx: Queryable,
  { runId, executionId }: RunSession,
  { assignmentId, harness, modelId }: Extract<EventAction, { kind: 'start_run' }>,
): Promise<void> {
  const target = { runId, executionId };
  if (assignmentId !== undefined) {
    await claim(tx, { ...target, args: { assignment_id: assignmentId, lease_seconds: deps.timing.leaseSeconds } });
  }
  await start(tx, { ...target, payload: { harness, model_id: modelId } });
}
