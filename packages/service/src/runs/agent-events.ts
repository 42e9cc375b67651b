import type { AgentEvent } from '@runyard/contract/agent-protocol';
import type { TimelineEventType } from '@runyard/contract/timeline';
import { redactEvents, type Tails } from '../conversations/redact-events.ts';
import type { Queryable, Statement } from '../store/database.ts';
import { blockRun } from './block.ts';
import { type Engine, runChannel } from './engine.ts';
import { createRedactor, type Redactor } from './redaction.ts';
import type { RunSession } from './sessions.ts';
import { takeFollowup } from './take-followups.ts';
import type { Phase } from './transition.ts';
import { claim, start } from './transitions.ts';

const lockRun: Statement = {
  name: 'lock_run',
  text: `
    SELECT current_execution_id, assignment_id, (config->>'idle_timeout_minutes')::float8 * 60 AS idle_seconds
    FROM runs WHERE id = $1 FOR UPDATE`,
};

/** After `lockRun`, in a statement of its own: it sees what the lock waited for. */
const readExecution: Statement = {
  name: 'read_execution_of_agent',
  text: 'SELECT phase, last_agent_seq, redaction_tails FROM executions WHERE id = $1 AND token_hash IS NOT NULL',
};

const keepProgress: Statement = {
  name: 'keep_agent_progress',
  text: `
    UPDATE executions SET last_agent_seq = $2, redaction_tails = $3::jsonb, transcript_bytes = transcript_bytes + $4,
      agent_seen_at = clock_timestamp(), lease_until = greatest(lease_until, clock_timestamp() + make_interval(secs => $5::float8))
    WHERE id = $1`,
};

const insertTranscript: Statement = {
  name: 'insert_transcript_chunk',
  text: 'INSERT INTO transcript_chunks (execution_id, agent_seq, lines) VALUES ($1, $2, $3)',
};

/** Numbers the rows after the run's last event and writes them; `occurred_at` of a timeline event is the sandbox's. */
const insertEvents: Statement = {
  name: 'insert_agent_events',
  text: `
    WITH input AS (
      SELECT i.event_type, i.event, i.occurred_at, row_number() OVER (ORDER BY i.position) AS n
      FROM jsonb_to_recordset($3::jsonb) AS i(position integer, event_type text, event jsonb, occurred_at timestamptz)
    ), numbered AS (
      UPDATE runs SET event_seq = event_seq + (SELECT count(*) FROM input), updated_at = clock_timestamp()
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
  redaction_tails: Tails;
}

interface LockedRun {
  current_execution_id: string;
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

const redactors = new WeakMap<RunSession, Redactor>();

function redactorOf(engine: Engine, session: RunSession): Redactor {
  const known = redactors.get(session) ?? createRedactor([session.token, ...engine.secrets]);
  redactors.set(session, known);
  return known;
}

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
    const [execution] = await tx.query<ExecutionRow>(readExecution, [executionId]);
    if (!run || !execution || execution.phase === 'ended' || execution.phase === 'queued') return 'superseded';
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
    let phase: Phase = execution.phase;
    const rows: object[] = [];
    const lines: string[] = [];
    for (const event of redactEvents(fresh, redactor, tails)) {
      if (event.type === 'transcript') lines.push(`${event.line}\n`);
      else if (event.type === 'follow_up_taken') await takeFollowup(tx, session, event.follow_up_id);
      else if (event.type === 'agent_started') {
        await insertRows(tx, session, rows.splice(0));
        phase = await startRun(engine, tx, session, run.assignment_id, phase, event);
      } else if (event.type === 'blocked') {
        const { resume: _, ...shown } = event.request;
        rows.push(rowOf({ ...event, request: shown }, rows.length));
        await insertRows(tx, session, rows.splice(0));
        const request = { ...event.request, asked_at: timeOf(event) };
        if (await blockRun(engine, tx, { runId, executionId, request, idleSeconds: run.idle_seconds })) phase = 'idle';
      } else rows.push(rowOf(event, rows.length));
    }
    await insertRows(tx, session, rows);
    const transcript = lines.join('');
    if (transcript) await tx.query(insertTranscript, [executionId, last, transcript]);
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

/** The sandbox's time, where it told one that a date of four digits has. */
function timeOf(event: AgentEvent): string {
  const time = new Date(event.occurred_at);
  const year = time.getUTCFullYear();
  return (year >= 1 && year <= 9999 ? time : new Date()).toISOString();
}

/** The event as `insertEvents` takes it. */
function rowOf(event: AgentEvent, position: number): object {
  const { seq: _seq, ...stored } = event;
  const { type: _type, occurred_at: _at, ...payload } = stored;
  const eventType = timelineTypes[event.type];
  return { position, event_type: eventType, occurred_at: timeOf(event), event: eventType ? payload : stored };
}

async function insertRows(tx: Queryable, session: RunSession, rows: object[]): Promise<void> {
  if (rows.length > 0) await tx.query(insertEvents, [session.runId, session.executionId, JSON.stringify(rows)]);
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
