import type { AgentEvent } from '@runyard/contract/agent-protocol';
import type { TimelineEventType } from '@runyard/contract/timeline';
import { runChannel } from '../../executions/channels.ts';
import { blockRun } from '../../executions/debug-window/block.ts';
import type { Engine } from '../../executions/engine.ts';
import { isAttempt } from '../../executions/run-tokens/attempt.ts';
import type { RunSession } from '../../executions/run-tokens/sessions.ts';
import type { Phase } from '../../executions/transitions/transition.ts';
import { claim, start } from '../../executions/transitions/transitions.ts';
import { redactorOf } from '../../redaction/agent-text.ts';
import type { HeldTexts } from '../../redaction/held-texts.ts';
import { redactEvents } from '../../redaction/redact-events.ts';
import { takeFollowup } from '../../runs/follow-ups/take-followups.ts';
import type { Queryable, Statement } from '../../store/database/database.ts';
import { type EventBudget, eventBudget, type RunCounters } from './event-budget.ts';
import { countDropped, eventsFull, lastStep, transcriptFull } from './event-limit.ts';

const lockRun: Statement = {
  name: 'lock_run',
  text: `
    SELECT event_bytes, transcript_bytes, dropped_events, dropped_lines, assignment_id, (config->>'idle_timeout_minutes')::float8 * 60 AS idle_seconds
    FROM runs WHERE id = $1 FOR UPDATE`,
};

/** After `lockRun`, in a statement of its own: it sees what the lock waited for. */
const readExecution: Statement = {
  name: 'read_execution_of_agent',
  text: `SELECT e.phase, e.last_agent_seq, e.redaction_tails FROM executions e WHERE e.id = $1 AND ${isAttempt('e', '$2')}`,
};

const keepProgress: Statement = {
  name: 'keep_agent_progress',
  text: `
    UPDATE executions SET last_agent_seq = $2, redaction_tails = $3::jsonb, transcript_bytes = transcript_bytes + $4,
      agent_seen_at = clock_timestamp(), lease_until = greatest(lease_until, clock_timestamp() + make_interval(secs => $5::float8))
    WHERE id = $1`,
};

/** Counts the bytes with what takes them. */
const insertTranscript: Statement = {
  name: 'insert_transcript_chunk',
  text: `
    WITH counted AS (UPDATE runs SET transcript_bytes = transcript_bytes + $5 WHERE id = $4)
    INSERT INTO transcript_chunks (execution_id, agent_seq, lines) VALUES ($1, $2, $3)`,
};

/** Numbers the rows after the run's last event, counts their bytes and writes them; `occurred_at` of a timeline event is the sandbox's. */
const insertEvents: Statement = {
  name: 'insert_agent_events',
  text: `
    WITH input AS (
      SELECT i.event_type, i.event, i.occurred_at, row_number() OVER (ORDER BY i.position) AS n
      FROM jsonb_to_recordset($3::jsonb) AS i(position integer, event_type text, event jsonb, occurred_at timestamptz)
    ), numbered AS (
      UPDATE runs SET event_seq = event_seq + (SELECT count(*) FROM input), event_bytes = event_bytes + $4, updated_at = clock_timestamp()
      WHERE id = $1 RETURNING id, event_seq - (SELECT count(*) FROM input) AS base
    ), timeline AS (
      INSERT INTO run_events (run_id, seq, event_type, occurred_at, execution_number, payload)
      SELECT numbered.id, numbered.base + input.n, input.event_type, input.occurred_at, (SELECT number FROM executions WHERE id = $2), input.event
      FROM numbered, input WHERE input.event_type IS NOT NULL
    ), conversation AS (
      INSERT INTO conversation_events (run_id, seq, execution_id, event)
      SELECT numbered.id, numbered.base + input.n, $2, input.event
      FROM numbered, input WHERE input.event_type IS NULL
    )
    SELECT pg_notify('${runChannel}', id::text) FROM numbered`,
};

interface ExecutionRow {
  phase: Phase;
  last_agent_seq: number;
  redaction_tails: HeldTexts;
}

interface LockedRun extends RunCounters {
  assignment_id: string | null;
  /** Null: the configuration does not say. */
  idle_seconds: number | null;
}

/** `superseded`: the execution has ended, or belongs to another assignment; the agent must stop. */
export type ApplyOutcome = { readonly acknowledged: number } | 'superseded';

const timelineTypes: Partial<Record<AgentEvent['type'], TimelineEventType>> = {
  setup_step_started: 'setup_step_started',
  setup_step_finished: 'setup_step_finished',
};

/**
 * Applies the events that were not applied before, in order, in one transaction with the acknowledgement: sent twice they
 * count once, and a gap is not crossed (the agent sends the rest again). After a cancel the last words are still taken.
 */
export async function applyAgentEvents(
  engine: Engine,
  session: RunSession,
  events: readonly AgentEvent[],
): Promise<ApplyOutcome> {
  const { runId, executionId } = session;
  return await engine.db.transaction(async (tx) => {
    const [run] = await tx.query<LockedRun>(lockRun, [runId]);
    const [execution] = await tx.query<ExecutionRow>(readExecution, [executionId, session.tokenHash]);
    if (!run || !execution) return 'superseded';
    const fresh: AgentEvent[] = [];
    let last = Number(execution.last_agent_seq);
    for (const event of events) {
      if (event.seq !== last + 1) continue;
      fresh.push(event);
      last = event.seq;
    }
    if (fresh.length === 0) return { acknowledged: last };
    const redactor = redactorOf(engine, session);
    const tails = { ...execution.redaction_tails };
    const budget = eventBudget(engine.limits, run);
    const rows = startRows(tx, session, budget);
    const lines: string[] = [];
    let phase: Phase = execution.phase;
    for (const event of redactEvents(fresh, redactor, tails)) {
      if (event.type === 'transcript') {
        const wasFull = budget.isFull.transcript;
        if (budget.takeLine(event.line)) lines.push(`${event.line}\n`);
        else if (!wasFull) {
          const full = transcriptFull(engine.limits);
          lines.push(`${full.line}\n`);
          rows.add(full.event, timeOf(event));
        }
      } else if (event.type === 'follow_up_taken') {
        // A sandbox that is about to go plays no further turn: the follow-up waits for the next one.
        if (phase !== 'stopping') await takeFollowup(tx, session, event.follow_up_id);
      } else if (event.type === 'agent_started') {
        await rows.insert();
        phase = await startRun(engine, tx, session, run.assignment_id, phase, event);
      } else {
        const wasTold = Number(run.dropped_events) + budget.added.droppedEvents > 0;
        rows.take(event);
        if (!wasTold && budget.added.droppedEvents > 0) {
          await rows.insert();
          const own = 'step_id' in event && !timelineTypes[event.type] ? event.step_id : undefined;
          const at = { occurredAt: timeOf(event), stepId: own ?? (await lastStep(tx, runId)) };
          for (const told of eventsFull(engine.limits, at)) rows.add(told, at.occurredAt);
        }
        if (event.type === 'blocked') {
          await rows.insert();
          const request = { ...event.request, asked_at: timeOf(event) };
          if (await blockRun(engine, tx, { runId, executionId, request, idleSeconds: run.idle_seconds }))
            phase = 'idle';
        }
      }
    }
    await rows.insert();
    const transcript = lines.join('');
    if (transcript)
      await tx.query(insertTranscript, [executionId, last, transcript, runId, budget.added.transcriptBytes]);
    await countDropped(tx, runId, budget.added);
    await tx.query(keepProgress, [
      executionId,
      last,
      JSON.stringify(tails),
      Buffer.byteLength(transcript),
      phase === 'stopping' ? 0 : engine.timing.leaseSeconds,
    ]);
    return { acknowledged: last };
  });
}

const inUtc = /^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,9})?Z$/;

/** The sandbox's time, where it told one that a date of four digits has. */
function timeOf(event: AgentEvent): string {
  const time = new Date(event.occurred_at);
  const year = time.getUTCFullYear();
  return (year >= 1 && year <= 9999 ? time : new Date()).toISOString();
}

/** What `insertEvents` reads, but for the position. */
interface EventRow {
  readonly event_type?: TimelineEventType;
  readonly occurred_at: string;
  readonly event: object;
}

function rowOf(event: AgentEvent): EventRow {
  const { seq: _seq, ...told } = event;
  // Answers say when it happened: as RFC 3339 in UTC, whatever the sandbox wrote.
  const stored = { ...told, occurred_at: inUtc.test(told.occurred_at) ? told.occurred_at : timeOf(event) };
  const { type: _type, occurred_at: _at, ...payload } = stored;
  const eventType = timelineTypes[event.type];
  if (eventType) return { event_type: eventType, occurred_at: timeOf(event), event: payload };
  if (event.type !== 'blocked') return { occurred_at: timeOf(event), event: stored };
  const { resume: _, ...request } = event.request;
  return { occurred_at: timeOf(event), event: { ...stored, request } };
}

/** The rows of a batch, in order, until they are inserted. */
function startRows(tx: Queryable, session: RunSession, budget: EventBudget) {
  let waiting: string[] = [];
  let counted = 0;
  const placed = (row: EventRow) => ({ position: waiting.length, ...row });
  return {
    /** Where there is room for it. */
    take(event: AgentEvent): void {
      const json = budget.take(event, (kept) => placed(rowOf(kept)));
      if (json !== undefined) waiting.push(json);
    },
    /** In any case: what the service says about the limits, once in a run. */
    add(row: Omit<EventRow, 'occurred_at'>, occurredAt: string): void {
      waiting.push(JSON.stringify(placed({ ...row, occurred_at: occurredAt })));
    },
    async insert(): Promise<void> {
      if (waiting.length === 0) return;
      const bytes = budget.added.eventBytes - counted;
      counted = budget.added.eventBytes;
      const rows = `[${waiting.join(',')}]`;
      waiting = [];
      await tx.query(insertEvents, [session.runId, session.executionId, rows, bytes]);
    },
  };
}

/** An agent that speaks before its worker's claim arrived proves the claim. */
async function startRun(
  engine: Engine,
  tx: Queryable,
  session: RunSession,
  assignmentId: string | null,
  phase: Phase,
  event: Extract<AgentEvent, { type: 'agent_started' }>,
): Promise<Phase> {
  const target = { runId: session.runId, executionId: session.executionId };
  if (phase === 'assigned' && assignmentId !== null) {
    await claim(tx, { ...target, args: { assignment_id: assignmentId, lease_seconds: engine.timing.leaseSeconds } });
  }
  const started = await start(tx, { ...target, payload: { harness: event.harness, model_id: event.model_id } });
  return started ? 'running' : phase;
}
