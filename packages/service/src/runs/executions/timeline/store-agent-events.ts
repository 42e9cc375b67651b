import type { Queryable } from '../../../platform/store/database/database.ts';
import { defineStatement } from '../../../platform/store/database/statement.ts';
import type { HeldTexts } from '../../../team/redaction/redact-events.ts';
import { insertConversationEvents } from '../../conversations/stored-events.ts';
import { insertTranscriptChunk } from '../../conversations/transcript-chunks.ts';
import { tellReaders } from '../notices.ts';
import { lastChange } from './timeline.ts';

/** Names the SQL parameters of a statement that records the progress of an agent. */
interface ProgressParameters {
  readonly lastSeq: string;
  readonly heldTexts: string;
  readonly transcriptBytes: string;
  readonly leaseSeconds: string;
}

/** Returns the SQL assignments to columns of `executions` that record which events of an agent are stored, and renew the lease. */
const setAgentProgress = ({ lastSeq, heldTexts, transcriptBytes, leaseSeconds }: ProgressParameters): string => `
      last_agent_seq = ${lastSeq}, redaction_tails = ${heldTexts}::jsonb, transcript_bytes = transcript_bytes + ${transcriptBytes},
      agent_seen_at = clock_timestamp(), lease_until = greatest(lease_until, clock_timestamp() + make_interval(secs => ${leaseSeconds}::float8))`;

const keepProgress = defineStatement({
  name: 'keep_agent_progress',
  text: `
    UPDATE executions SET ${setAgentProgress({ lastSeq: '$2', heldTexts: '$3', transcriptBytes: '$4', leaseSeconds: '$5' })}
    WHERE id = $1`,
  row: {},
});

/** Says which events of an execution's agent are already stored. */
interface AgentProgress {
  /** Number of the last event that was stored. */
  readonly lastSeq: number;
  /** For each stream of text: the end of the text that is held back because it may be the beginning of a secret. */
  readonly heldTexts: HeldTexts;
  /** Number of seconds, from now, for which the lease lasts at least. */
  readonly leaseSeconds: number;
}

/**
 * Records which events of the agent are stored, and renews the lease, because the agent is alive. The caller has locked the run's row.
 */
async function keepAgentProgress(
  tx: Queryable,
  executionId: string,
  progress: AgentProgress & { /** Bytes of transcript to add. */ readonly transcriptBytes: number },
): Promise<void> {
  const { lastSeq, heldTexts, transcriptBytes, leaseSeconds } = progress;
  await tx.query(keepProgress, [executionId, lastSeq, JSON.stringify(heldTexts), transcriptBytes, leaseSeconds]);
}

/** Parts of SQL to add to the statement that stores events. */
interface Additions {
  /** SQL of further assignments to columns of `runs`, `, name = value`. */
  readonly run?: string;
  /** SQL of further common table expressions, `, name AS (…)`. */
  readonly further?: string;
}

/**
 * Gives the rows the numbers that follow the number of the run's last event, counts the bytes of the rows, and writes the rows to the
 * timeline and the conversation.
 */
const insertEvents = ({ run = '', further = '' }: Additions = {}): string => `
    WITH input AS (
      SELECT i.event_type, i.event, i.occurred_at, row_number() OVER (ORDER BY i.position) AS n
      FROM jsonb_to_recordset($3::jsonb) AS i(position integer, event_type text, event jsonb, occurred_at timestamptz)
    ), counted AS (
      UPDATE runs SET event_seq = event_seq + (SELECT count(*) FROM input), event_bytes = event_bytes + $4, updated_at = ${lastChange}${run}
      WHERE id = $1 RETURNING id, event_seq - (SELECT count(*) FROM input) AS base
    ), numbered AS (
      SELECT counted.id AS run_id, counted.base + input.n AS seq, input.event_type, input.occurred_at, input.event
      FROM counted, input
    ), timeline AS (
      INSERT INTO run_events (run_id, seq, event_type, occurred_at, execution_number, payload)
      SELECT run_id, seq, event_type, occurred_at, (SELECT number FROM executions WHERE id = $2), event
      FROM numbered WHERE event_type IS NOT NULL
    ), conversation AS (${insertConversationEvents({ relation: 'numbered', where: 'event_type IS NULL', executionId: '$2' })}
    )${further}
    SELECT ${tellReaders('id')} FROM counted WHERE EXISTS (SELECT FROM input)`;

const insertRows = defineStatement({ name: 'insert_agent_events', text: insertEvents(), row: {} });

const insertBatch = defineStatement({
  name: 'insert_agent_batch',
  text: insertEvents({
    run: ', transcript_bytes = transcript_bytes + $5',
    further: `, chunk AS (${insertTranscriptChunk({ executionId: '$2', lastSeq: '$7', lines: '$6' })}
    ), progress AS (
      UPDATE executions SET ${setAgentProgress({ lastSeq: '$7', heldTexts: '$8', transcriptBytes: '$9', leaseSeconds: '$10' })} WHERE id = $2
    )`,
  }),
  row: {},
});

/** The run and the execution for which an agent works. */
interface Target {
  readonly runId: string;
  readonly executionId: string;
}

/**
 * Events of an agent, in order. Each row is the JSON of `{position, event_type?, event, occurred_at}`. A row with `event_type` goes to
 * the timeline; a row without it goes to the conversation.
 */
interface EventRows {
  readonly rows: readonly string[];
  /** Number of bytes to add to the run's `event_bytes`. */
  readonly bytes: number;
}

/**
 * Stores events of an agent and notifies the readers of the run. The caller has locked the run's row.
 */
export async function storeAgentEvents(
  tx: Queryable,
  { runId, executionId }: Target,
  { rows, bytes }: EventRows,
): Promise<void> {
  if (rows.length > 0) await tx.query(insertRows, [runId, executionId, `[${rows.join(',')}]`, bytes]);
}

/** Lines for the transcript of an execution. */
interface TranscriptLines {
  /** The lines, each with a line feed at the end; '' if there are none. */
  readonly lines: string;
  /** Number of bytes to add to the `transcript_bytes` of the run. */
  readonly countedBytes: number;
}

/**
 * Stores the last events of a batch and its lines of transcript, and records the progress, in one statement. The caller has locked the
 * run's row.
 */
export async function storeAgentBatch(
  tx: Queryable,
  target: Target,
  { rows, bytes }: EventRows,
  { lines, countedBytes }: TranscriptLines,
  progress: AgentProgress,
): Promise<void> {
  const transcriptBytes = Buffer.byteLength(lines);
  if (rows.length === 0 && lines === '')
    return await keepAgentProgress(tx, target.executionId, { ...progress, transcriptBytes });
  await tx.query(insertBatch, [
    target.runId,
    target.executionId,
    `[${rows.join(',')}]`,
    bytes,
    countedBytes,
    lines === '' ? null : lines,
    progress.lastSeq,
    JSON.stringify(progress.heldTexts),
    transcriptBytes,
    progress.leaseSeconds,
  ]);
}

const addDropped = defineStatement({
  name: 'count_dropped_output',
  text: 'UPDATE runs SET dropped_events = dropped_events + $2, dropped_lines = dropped_lines + $3 WHERE id = $1',
  row: {},
});

/**
 * Adds to the counts of events and transcript lines that were not stored, because the run has reached its limits. The caller has locked the
 * run's row.
 */
export async function countDropped(
  tx: Queryable,
  runId: string,
  { droppedEvents, droppedLines }: { readonly droppedEvents: number; readonly droppedLines: number },
): Promise<void> {
  if (droppedEvents + droppedLines > 0) await tx.query(addDropped, [runId, droppedEvents, droppedLines]);
}
