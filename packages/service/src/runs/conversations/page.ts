/**
 * Reads pages of a run's conversation, from its end. A page is a range of the run's events, so its cost does not depend on the length of
 * the conversation.
 */
import type { AgentEvent } from '@runyard/contract/runs/agent-events';
import type { ContinuedEvent, PagedStep } from '@runyard/contract/runs/conversation-pages';
import type { ContentBlock, Message } from '@runyard/contract/runs/conversations';
import { isTerminal } from '@runyard/contract/runs/run-states';
import type { RunState } from '@runyard/contract/runs/states';
import type { Database } from '../../platform/store/database/database.ts';
import { defineStatement, integer, text } from '../../platform/store/database/statement.ts';
import { asObject, summarisedText } from './output.ts';
import { lastSpeaker } from './read.ts';
import { startReplay } from './replay.ts';

/** The place where a page ends: the border to the next newer page. */
export interface PageEnd {
  /** The page has only events with numbers below this number. */
  readonly before: number;
  /** Ids of the actions that began on this page or an older page, and also have events on newer pages. */
  readonly open: readonly string[];
}

/** Maximum number of bytes that a page shows of an action's input, an action's output and a text. */
const maxShownBytes = { input: 16 * 1024, output: 8 * 1024, text: 32 * 1024 } as const;
const maxPageBytes = 1024 * 1024;
/**
 * Maximum size of the stored events that are read for a page, in bytes. A page exceeds this size only to avoid a cut inside an action or
 * a text.
 */
const maxReadBytes = 2 * 1024 * 1024;
/** Maximum number of events of a page. A page with this number may begin inside an action or a text. */
const maxEvents = 5_000;
/** Maximum number of action ids in a `PageEnd`. Harnesses run only a few actions at a time. */
const maxOpen = 50;

/**
 * Reads the number of the run's last event. All events up to this number are visible, because each transaction that writes events locks the
 * run's row.
 */
const readReached = defineStatement({
  name: 'read_reached_of_conversation',
  text: 'SELECT event_seq, state FROM runs WHERE id = $1',
  row: { event_seq: integer, state: text<RunState>() },
});

/** All fetches of this cursor use one snapshot of the database. So no event is missing if the retention loop merges events meanwhile. */
const declareNewest = `
  DECLARE newest_events NO SCROLL CURSOR FOR
  SELECT seq, execution_id, event::text AS event FROM conversation_events
  WHERE run_id = $1 AND seq < $2 AND seq <= $3 ORDER BY seq DESC`;
const fetchNewest = 'FETCH 100 FROM newest_events';

interface Row {
  readonly seq: number;
  readonly execution_id: string;
  readonly event: string;
}

interface StoredEvent {
  readonly executionId: string;
  /** The event; `seq` is its number in the run. */
  readonly event: AgentEvent;
}

const idOfAction = (event: AgentEvent): string | undefined =>
  event.type === 'action_output' || event.type === 'action_result' ? event.action_id : undefined;

/** Gathers the events of a page, from the newest event to the oldest. */
function gatherPage(limit: number) {
  const events: StoredEvent[] = [];
  const texts = new Set<string>();
  /** Ids of the actions that have events on the page, but whose beginning has not been added yet. */
  const split = new Set<string>();
  let messages = 0;
  let pageBytes = 0;
  let readBytes = 0;
  /** The longest page so far that cuts neither an action nor a text has this number of events, counted from the newest event. */
  let whole = 0;

  const cutsText = (event: AgentEvent) => event.type === 'text' && texts.has(event.message_id);
  const isFull = () => messages >= limit || pageBytes >= maxPageBytes || readBytes >= maxReadBytes;

  return {
    /** Adds the next older event. Returns false if the page is complete without this event. */
    add: ({ seq, execution_id: executionId, event: json }: Row): boolean => {
      const event: AgentEvent = { ...(JSON.parse(json) as AgentEvent), seq };
      if (split.size === 0 && !cutsText(event)) {
        whole = events.length;
        if (isFull()) return false;
      }
      if (events.length >= maxEvents || readBytes >= 2 * maxReadBytes) {
        if (whole >= events.length / 2) events.length = whole;
        return false;
      }
      events.push({ executionId, event });
      readBytes += json.length;
      pageBytes += Math.min(json.length, event.type === 'text' ? maxShownBytes.text : maxShownBytes.input);
      const pieceOf = idOfAction(event);
      if (pieceOf !== undefined) split.add(pieceOf);
      else if (event.type === 'text') {
        if (!texts.has(event.message_id)) messages += 1;
        texts.add(event.message_id);
      } else if (event.type === 'action') {
        split.delete(event.action_id);
        messages += 2;
      } else if (event.type === 'turn_started' || event.type === 'notice' || event.type === 'blocked') messages += 1;
      return true;
    },
    /** Returns the events of the page, oldest first. */
    oldestFirst: () => events.reverse(),
  };
}

/**
 * Returns the block as a page shows it. `wholeBytes`: size in bytes of the text or JSON before it was shortened; 0: nothing was
 * shortened.
 */
function shortenBlock(block: ContentBlock): { readonly block: ContentBlock; readonly wholeBytes: number } {
  const bytesOf = (value: unknown) => Buffer.byteLength(typeof value === 'string' ? value : JSON.stringify(value));
  const same = { block, wholeBytes: 0 };
  switch (block.type) {
    case 'text': {
      const short = summarisedText(block.text, maxShownBytes.text);
      return short === block.text ? same : { block: { ...block, text: short }, wholeBytes: bytesOf(block.text) };
    }
    case 'action': {
      const short = asObject(block.input, maxShownBytes.input);
      return short === block.input ? same : { block: { ...block, input: short }, wholeBytes: bytesOf(block.input) };
    }
    case 'action_result': {
      const { text: output } = block.output;
      const short = summarisedText(output, maxShownBytes.output);
      if (short === output) return same;
      return { block: { ...block, output: { ...block.output, text: short } }, wholeBytes: bytesOf(output) };
    }
    case 'event': {
      // Never shorten a request: a person needs all of it to decide.
      if (block.name === 'permission' || block.name === 'question') return same;
      const short = asObject(block.data, maxShownBytes.output);
      return short === block.data ? same : { block: { ...block, data: short }, wholeBytes: bytesOf(block.data) };
    }
  }
}

function shortenMessage(message: Message): Message & { readonly whole_bytes?: number } {
  const blocks = message.content.map(shortenBlock);
  const wholeBytes = blocks.reduce((sum, block) => sum + block.wholeBytes, 0);
  return {
    ...message,
    content: blocks.map(({ block }) => block),
    ...(wholeBytes > 0 ? { whole_bytes: wholeBytes } : {}),
  };
}

function shortenContinued(event: ContinuedEvent): ContinuedEvent {
  if (event.type === 'action_output') return { ...event, text: summarisedText(event.text, maxShownBytes.output) };
  return event.output === undefined ? event : { ...event, output: summarisedText(event.output, maxShownBytes.output) };
}

/** A page of a conversation, and the end of the next older page. */
interface ReadPage {
  readonly steps: PagedStep[];
  readonly continued: ContinuedEvent[];
  /** Number of the run's last event. */
  readonly reached: number;
  /** Undefined if the conversation begins on this page. */
  readonly older: PageEnd | undefined;
}

/** Reads the page that ends at `end`, or the newest page, of about `limit` messages; null if there is no such run. */
export async function readMessagePage(
  db: Database,
  runId: string,
  { end, limit }: { readonly end: PageEnd | undefined; readonly limit: number },
): Promise<ReadPage | null> {
  return await db.transaction(async (tx) => {
    const [run] = await tx.query(readReached, [runId]);
    if (!run) return null;
    const reached = run.event_seq;
    await tx.query(declareNewest, [runId, end?.before ?? Number.MAX_SAFE_INTEGER, reached]);
    const page = gatherPage(limit);
    let beginsHere: boolean;
    for (;;) {
      const rows = await tx.query<Row>(fetchNewest);
      beginsHere = rows.length === 0;
      if (beginsHere || !rows.every(page.add)) break;
    }
    const events = page.oldestFirst();
    const lastExecution = end ? await lastSpeaker(tx, runId) : events.at(-1)?.executionId;
    return { ...replayPage(events, { end, beginsHere, lastExecution, isOver: isTerminal(run.state) }), reached };
  });
}

interface PageContext {
  readonly end: PageEnd | undefined;
  readonly beginsHere: boolean;
  readonly lastExecution: string | undefined;
  readonly isOver: boolean;
}

function replayPage(
  events: readonly StoredEvent[],
  { end, beginsHere, lastExecution, isOver }: PageContext,
): Omit<ReadPage, 'reached'> {
  const begun = new Set(events.flatMap(({ event }) => (event.type === 'action' ? [event.action_id] : [])));
  const pieces = events.flatMap(({ event }) => idOfAction(event) ?? []);
  const older = new Set([...pieces, ...(end?.open ?? [])].filter((id) => !begun.has(id)));
  const newer = new Set(end?.open);
  const seqs = new Map<Message, number>();
  const begunSteps = new Set<string>();
  const continued: ContinuedEvent[] = [];
  const replay = startReplay('', (message, event) => {
    seqs.set(message, event.seq);
    if (event.type === 'turn_started') begunSteps.add(event.step_id);
  });
  let execution = events[0]?.executionId;
  for (const { executionId, event } of events) {
    if (executionId !== execution) replay.endRun();
    execution = executionId;
    const isPiece = event.type === 'action_output' || event.type === 'action_result';
    if (isPiece && older.has(event.action_id) && !beginsHere) continued.push(shortenContinued(event));
    else replay.apply(event);
  }
  if (isOver || execution !== lastExecution) replay.endRun(newer);
  const steps = replay.read().steps.map(
    ({ started_at, steps: _, messages, ...step }): PagedStep => ({
      ...step,
      ...(started_at !== undefined && (beginsHere || begunSteps.has(step.id)) ? { started_at } : {}),
      messages: messages.map((message) => ({ ...shortenMessage(message), seq: seqs.get(message) ?? 0 })),
    }),
  );
  const oldest = events[0]?.event.seq;
  return {
    steps,
    continued,
    older: beginsHere || oldest === undefined ? undefined : { before: oldest, open: [...older].slice(0, maxOpen) },
  };
}
