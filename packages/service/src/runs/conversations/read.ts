import { isTerminal } from '@runyard/contract/runs/run-states';
import type { RunState } from '@runyard/contract/runs/states';
import type { BodyLimits, Place } from '../../platform/bodies/body-budget.ts';
import type { Database, Queryable } from '../../platform/store/database/database.ts';
import {
  boolean,
  defineStatement,
  integer,
  nullable,
  numeric,
  text,
  uuid,
} from '../../platform/store/database/statement.ts';
import { type ConversationRange, readOrder, readOrderOfMessage } from './order.ts';
import { type ConversationPart, partsOfRun } from './parts.ts';

/** Waits until `bytes` bytes of memory may be used to read a conversation. */
export type EnterRead = (bytes: number) => Promise<Place | 'busy' | 'gone'>;

const mb = 1024 * 1024;

/**
 * Memory for a long conversation: the order of its events (10 bytes each), a page of events, and the bytes that the client has not read
 * yet.
 */
const longBytes = 16 * mb;

/**
 * Limits the memory of all conversations that are being read. Short conversations have a separate limit, so they do not wait for long ones.
 */
export const readLimits: BodyLimits = {
  smallBytes: mb,
  small: { total: 32 * mb, perTeam: 24 * mb, perExecution: 8 * mb },
  large: { total: 4 * longBytes, perTeam: 3 * longBytes, perExecution: longBytes },
  requestsPerExecution: 4,
  waiting: 16,
  waitMs: 20_000,
};

/** Returns the maximum memory, in bytes, that is needed to read a whole conversation of `bytes` bytes. */
export const readCost = (bytes: number): number => (bytes <= mb ? bytes : longBytes);

/** Returns the maximum memory, in bytes, that is needed to read one page or message of a conversation of `bytes` bytes. */
export const readPartCost = (bytes: number): number => Math.min(bytes, mb);

/** A run whose events belong to a conversation. */
export interface ConversationRun extends ConversationRange {
  readonly id: string;
  readonly state: RunState;
}

/** Reads the conversation of the given runs, oldest first, part by part. Yields nothing if no agent sent a message. */
export async function* readParts(db: Database, runs: readonly ConversationRun[]): AsyncGenerator<ConversationPart> {
  for (const { id, state, ...range } of runs) {
    const order = await readOrder(db, id, range);
    const isOver = isTerminal(state) || range.upTo !== undefined || range.until !== undefined;
    yield* partsOfRun(db, { runId: id, order, lastExecutionId: await lastSpeaker(db, id), isOver });
  }
}

/** Reads the message whose first event, or first event on a page, has the number `seq`. Yields nothing if there is no such message. */
export async function* readMessageParts(
  db: Database,
  { id, state }: ConversationRun,
  seq: number,
): AsyncGenerator<ConversationPart> {
  const order = await readOrderOfMessage(db, id, seq);
  yield* partsOfRun(db, { runId: id, order, lastExecutionId: await lastSpeaker(db, id), isOver: isTerminal(state) });
}

const readLastSpeaker = defineStatement({
  name: 'read_last_execution_of_conversation',
  text: 'SELECT execution_id FROM conversation_events WHERE run_id = $1 ORDER BY seq DESC LIMIT 1',
  row: { execution_id: uuid },
});

/** Returns the execution that sent the run's last event. */
export async function lastSpeaker(db: Queryable, runId: string): Promise<string | undefined> {
  const [row] = await db.query(readLastSpeaker, [runId]);
  return row?.execution_id;
}

const readRuns = defineStatement({
  name: 'read_runs_of_conversation',
  text: `
    SELECT id, state, harness, until, until IS NOT NULL AS "isForked" FROM (
      SELECT r.id, r.state, r.harness, f.up_to AS until, r.created_at FROM forked_runs f JOIN runs r ON r.id = f.run_id
      WHERE f.conversation_id = $2 AND r.team_id = $1
      UNION ALL SELECT id, state, harness, NULL, created_at FROM runs WHERE conversation_id = $2 AND team_id = $1
    ) all_runs ORDER BY "isForked" DESC, created_at, id`,
  row: { id: uuid, state: text<RunState>(), harness: text(), until: nullable(integer), isForked: boolean },
});

/** A run of a conversation. `isForked`: the run belongs to the conversation from which this conversation was forked. */
export interface ListedRun extends ConversationRun {
  readonly harness: string;
  readonly isForked: boolean;
}

/**
 * Returns a conversation's runs in the team, oldest first; [] if the team has no such conversation. A forked conversation begins with the
 * runs of the other conversation, up to the fork.
 */
export async function readConversationRuns(
  db: Queryable,
  teamId: string,
  conversationId: string,
): Promise<ListedRun[]> {
  const runs = await db.query(readRuns, [teamId, conversationId]);
  return runs.map(({ until, ...run }) => (until === null ? run : { ...run, until }));
}

const readLatest = defineStatement({
  name: 'read_latest_run_of_conversation',
  text: 'SELECT id FROM runs WHERE conversation_id = $2 AND team_id = $1 ORDER BY created_at DESC, id DESC LIMIT 1',
  row: { id: uuid },
});

/** Returns the newest run of the team's conversation; undefined if it has none, such as a fork that nobody has continued. */
export async function readLatestRunId(
  db: Queryable,
  teamId: string,
  conversationId: string,
): Promise<string | undefined> {
  return (await db.query(readLatest, [teamId, conversationId]))[0]?.id;
}

const sumBytes = defineStatement({
  name: 'sum_conversation_bytes',
  text: 'SELECT sum(event_bytes) AS bytes FROM runs WHERE id = ANY($1::uuid[])',
  row: { bytes: nullable(numeric) },
});

/** Returns the total size, in bytes, with which the runs' events were reported. Events that were merged later may take less. */
export async function sizeOfConversation(db: Queryable, runs: readonly ConversationRun[]): Promise<number> {
  const [row] = await db.query(sumBytes, [runs.map(({ id }) => id)]);
  return Number(row?.bytes ?? 0);
}
