import type { AgentEvent } from '@runyard/contract/runs/agent-events';
import { storable } from '@runyard/contract/wire/storable-json';
import type { Redactor } from '@runyard/system/redaction/redactor';
import { withoutLineBreaks } from '@runyard/system/redaction/spellings';
import { isChunk, isLineStream, lineOf, readLine, shapeOf, type TranscriptLine } from './transcript-line.ts';

/**
 * The end of a stream's text that is held back, because it may be the beginning of a secret. It is redacted together with the next piece of
 * the stream.
 */
interface HeldText {
  readonly text: string;
  /** Number of characters at the beginning of `text` that are already stored. The other characters are not stored yet. */
  readonly stored: number;
}

/**
 * Held texts by the key of their stream. A string is a held text of which nothing is stored yet. The column `executions.redaction_tails`
 * stores this object between two batches of events.
 */
export type HeldTexts = Record<string, string | HeldText>;

/**
 * If the end of a line, or the end of a text that pauses, may be the beginning of a secret, but has fewer characters than this, it is stored
 * at once. Otherwise, if a command prints a line and then works for minutes, or a model pauses after a word, the text would be shown without
 * its last character whenever an encoded form of some secret begins with that character. So up to three characters of a secret may be
 * stored; the other characters of the secret are still redacted.
 */
const minHiddenLength = 4;

const isStoredAtOnce = (text: string, pauses: boolean): boolean =>
  (pauses || /[\r\n]$/.test(text)) && withoutLineBreaks(text).length < minHiddenLength;

/** Returns the length of the longest common beginning of two texts. */
function commonLength(left: string, right: string): number {
  let length = 0;
  while (length < left.length && left[length] === right[length]) length += 1;
  return length;
}

/** Removes the held text of a stream from `held`, and returns the text. */
function takeHeld(stream: string, held: HeldTexts): HeldText {
  const value = held[stream] ?? '';
  delete held[stream];
  return typeof value === 'string' ? { text: value, stored: 0 } : value;
}

/** Removes the held text of a stream that has ended, and returns the part that is not stored. */
function takeRest(stream: string, held: HeldTexts): string {
  const { text, stored } = takeHeld(stream, held);
  return text.slice(stored);
}

/**
 * Returns the text of the next piece of a stream without secrets, and changes the held text of the stream. A piece without text says that
 * the stream pauses. `isLast`: no piece follows.
 */
function redactPiece(
  piece: { readonly stream: string; readonly text: string },
  redactor: Redactor,
  held: HeldTexts,
  isLast = false,
): string {
  const { text: before, stored } = takeHeld(piece.stream, held);
  const clean = isLast ? { text: redactor.whole(before + piece.text), held: '' } : redactor.piece(before, piece.text);
  const redacted = clean.text + clean.held;
  // If a secret began in text that is already stored, put the mark for the secret after the characters that are stored.
  const from = commonLength(before.slice(0, stored), redacted);
  const to = isStoredAtOnce(clean.held, piece.text === '') ? redacted.length : Math.max(from, clean.text.length);
  const storedOfHeld = to - clean.text.length;
  if (clean.held) held[piece.stream] = storedOfHeld > 0 ? { text: clean.held, stored: storedOfHeld } : clean.held;
  return redacted.slice(from, to);
}

/**
 * Returns the streams that end with this line. Another message or a tool call ends a message, and the end of a command ends the output of
 * the command.
 */
function endedBy({ piece, update, session }: TranscriptLine, held: HeldTexts): string[] {
  if (!update) return [];
  const { sessionUpdate, status, toolCallId } = update;
  const endsMessages = isChunk(sessionUpdate) || String(sessionUpdate).startsWith('tool_call');
  const endsOutput = status === 'completed' || status === 'failed';
  const streams = new Set([...Object.keys(held), ...(piece ? [piece.stream] : [])]);
  return [...streams].filter(isLineStream).filter((stream) => {
    const shape = shapeOf(stream);
    if (shape.session !== session) return false;
    if (isChunk(shape.sessionUpdate)) return endsMessages && stream !== piece?.stream;
    return endsOutput && 'output' in shape && shape.toolCallId === toolCallId;
  });
}

/** Removes the held text of a stream from `held`, and returns it as a line; undefined if there is none. */
function releaseLine(stream: string, held: HeldTexts): string | undefined {
  const text = takeRest(stream, held);
  return text ? lineOf(stream, text) : undefined;
}

/**
 * Returns the lines to store: the held texts of the streams that this line ends, and then the line without secrets. If the end of the
 * line's text may be the beginning of a secret, this end is held back in `held` until the next piece of the same stream.
 */
function redactLine(line: string, redactor: Redactor, held: HeldTexts): string[] {
  const read = readLine(line);
  const { piece } = read;
  const ended = endedBy(read, held);
  const released = ended.filter((stream) => stream !== piece?.stream).map((stream) => releaseLine(stream, held));
  const withRedactedPiece = (): string => {
    if (!piece) return line;
    const text = redactPiece(piece, redactor, held, ended.includes(piece.stream));
    return text === piece.text ? line : piece.with(text);
  };
  return [...released.filter((each) => each !== undefined), redactor.whole(withRedactedPiece())];
}

/**
 * Maximum number of streams whose text is held; no agent has more streams open at once. The held texts of further streams are stored at
 * once.
 */
const maxHeldStreams = 200;

function streamOf(event: AgentEvent): string | null {
  if (event.type === 'text') return `text ${event.message_id}`;
  if (event.type === 'action_output') return `output ${event.action_id}`;
  return null;
}

/**
 * Returns the streams that an event ends. The held texts of these streams are stored before the event. A message ends with the next
 * message, action or question, and not only with the turn.
 */
function endedStreams(event: AgentEvent, held: HeldTexts): string[] {
  const streams = Object.keys(held);
  switch (event.type) {
    case 'action':
    case 'blocked':
    case 'text':
      return streams.filter((stream) => stream.startsWith('text ') && stream !== streamOf(event));
    case 'action_result':
      return streams.filter((stream) => stream === `output ${event.action_id}`);
    case 'turn_finished':
      return streams;
    default:
      return [];
  }
}

/**
 * Redacts the events of an agent. All events of an agent pass through this function before they are stored. Removes secrets, even if their
 * parts are in several pieces or lines, and replaces NUL characters. May return more events than it received, because each released text
 * becomes a separate piece. Changes `held`.
 */
export function redactEvents(events: readonly AgentEvent[], redactor: Redactor, held: HeldTexts): AgentEvent[] {
  const stored: AgentEvent[] = [];
  for (const event of events) {
    for (const stream of endedStreams(event, held)) stored.push(...release(event, stream, held));
    for (const stream of Object.keys(held).slice(maxHeldStreams)) stored.push(...release(event, stream, held));
    if (event.type === 'transcript') {
      const lines = redactLine(storable(event.line) as string, redactor, held);
      stored.push(...lines.map((line) => ({ ...event, line })));
      continue;
    }
    const stream = streamOf(event);
    if (stream === null || (event.type !== 'text' && event.type !== 'action_output')) {
      stored.push(storable(redactor.value(event)) as AgentEvent);
      continue;
    }
    const text = redactPiece({ stream, text: storable(event.text) as string }, redactor, held);
    if (text !== '' || event.text !== '') stored.push({ ...event, text });
  }
  return stored;
}

/**
 * Returns the held text of a stream as an event with the number and time of `next`. The held text is not the beginning of a secret, because
 * the next text did not continue the secret.
 */
function release(next: AgentEvent, stream: string, held: HeldTexts): AgentEvent[] {
  const at = { seq: next.seq, occurred_at: next.occurred_at };
  if (isLineStream(stream)) {
    const line = releaseLine(stream, held);
    return line === undefined ? [] : [{ ...at, type: 'transcript', line }];
  }
  const text = takeRest(stream, held);
  if (!text) return [];
  const id = stream.slice(stream.indexOf(' ') + 1);
  if (stream.startsWith('output ')) return [{ ...at, text, type: 'action_output', action_id: id }];
  const step_id = 'step_id' in next ? next.step_id : '';
  return [{ ...at, text, type: 'text', message_id: id, role: 'assistant', step_id }];
}
