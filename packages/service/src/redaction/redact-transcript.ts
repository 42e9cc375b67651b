/**
 * Secrets out of raw transcript lines, also where one goes on in the next line: models and commands give their text in small
 * pieces, each in a JSON line of its own. Text at the end of a piece that may be the beginning of a secret is moved to the next
 * piece of the same stream, so that it is judged with what follows.
 */

import type { Tails } from './redact-events.ts';
import type { Redactor } from './redaction.ts';

type JsonObject = Record<string, unknown>;

/** Where a line has a piece of a text, and what its other pieces have in common with it. */
interface Piece {
  /** Key of the tails: `line`, and JSON from which `lineOf` makes a line. */
  readonly stream: string;
  readonly text: string;
  /** The line with another text in this place. */
  with(text: string): string;
}

/** Ids come from a harness, and are kept for as long as a piece is held back. */
const maxStreamChars = 1_000;

const asObject = (value: unknown): JsonObject | undefined =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as JsonObject) : undefined;

const streamPrefix = 'line ';
const streamOf = (shape: JsonObject): string => `${streamPrefix}${JSON.stringify(shape)}`;
const shapeOf = (stream: string): JsonObject => JSON.parse(stream.slice(streamPrefix.length)) as JsonObject;

/** True for a key of the tails that is a transcript's. */
export const isLineStream = (stream: string): boolean => stream.startsWith(streamPrefix);

/** Chunks of what an agent says or thinks: what the conversation joins, too. */
const isChunk = (kind: unknown): boolean => typeof kind === 'string' && kind.endsWith('_chunk');

function readLine(line: string): ReadLine {
  let message: unknown;
  try {
    message = JSON.parse(line);
  } catch {
    return { piece: { stream: streamOf({ plain: true }), text: line, with: (text) => text } };
  }
  const members = asObject(message);
  const pieceAt = (place: JsonObject, key: string, shape: JsonObject): Piece | undefined => {
    const text = place[key];
    const stream = streamOf(shape);
    if (typeof text !== 'string' || stream.length > maxStreamChars) return undefined;
    return {
      stream,
      text,
      with: (changed) => {
        place[key] = changed;
        return JSON.stringify(message);
      },
    };
  };
  // A line that was no message, as the agent wraps it.
  if (members && typeof members.raw === 'string') {
    const piece = pieceAt(members, 'raw', { raw: true });
    return piece ? { piece } : {};
  }
  const params = asObject(members?.params);
  const update = asObject(params?.update);
  if (!update) return {};
  const { sessionUpdate, toolCallId, messageId } = update;
  const session = params?.sessionId;
  const told = { update, session };
  if (isChunk(sessionUpdate)) {
    const content = asObject(update.content);
    const piece = content && pieceAt(content, 'text', { session, sessionUpdate, messageId });
    return piece ? { ...told, piece } : told;
  }
  const meta = asObject(update._meta);
  for (const output of ['terminal_output_delta', 'terminal_output']) {
    const place = asObject(meta?.[output]);
    const piece = place && pieceAt(place, 'data', { session, toolCallId, output });
    if (piece) return { ...told, piece };
  }
  return told;
}

interface ReadLine {
  /** The piece of a text that goes on in other lines; absent: the line has none. */
  readonly piece?: Piece;
  readonly update?: JsonObject;
  readonly session?: unknown;
}

/** The held streams that end with this line: a message with another one or with a tool call, a command's output with its end. */
function endedBy({ piece, update, session }: ReadLine, tails: Tails): string[] {
  if (!update) return [];
  const { sessionUpdate, status, toolCallId } = update;
  const interrupts = isChunk(sessionUpdate) || String(sessionUpdate).startsWith('tool_call');
  const settles = status === 'completed' || status === 'failed';
  const streams = new Set([...Object.keys(tails), ...(piece ? [piece.stream] : [])]);
  return [...streams].filter(isLineStream).filter((stream) => {
    const shape = shapeOf(stream);
    if (shape.session !== session) return false;
    if (isChunk(shape.sessionUpdate)) return interrupts && stream !== piece?.stream;
    return settles && 'output' in shape && shape.toolCallId === toolCallId;
  });
}

/** A line of its own for held text whose stream has ended. */
function lineOf(stream: string, text: string): string {
  const shape = shapeOf(stream);
  if (shape.plain === true) return text;
  if (shape.raw === true) return JSON.stringify({ raw: text });
  const { session, sessionUpdate, messageId, toolCallId, output } = shape;
  const update =
    output === undefined
      ? { sessionUpdate, messageId, content: { type: 'text', text } }
      : { sessionUpdate: 'tool_call_update', toolCallId, _meta: { [String(output)]: { data: text } } };
  return JSON.stringify({ jsonrpc: '2.0', method: 'session/update', params: { sessionId: session, update } });
}

/** What the stream held back, as a line; undefined: nothing. Changes `tails`. */
export function releaseLine(stream: string, tails: Tails): string | undefined {
  const text = tails[stream];
  delete tails[stream];
  return text ? lineOf(stream, text) : undefined;
}

/** The line without secrets, behind those that its coming lets go. Changes `tails`. */
export function redactLine(line: string, redactor: Redactor, tails: Tails): string[] {
  const read = readLine(line);
  const { piece } = read;
  const ended = endedBy(read, tails);
  const released = ended.filter((stream) => stream !== piece?.stream).map((stream) => releaseLine(stream, tails));
  return [...released.filter((each) => each !== undefined), redactor.whole(piece ? judged(piece) : line)];

  function judged({ stream, text: said, with: withText }: Piece): string {
    const held = tails[stream] ?? '';
    delete tails[stream];
    const isLast = ended.includes(stream);
    const judgement = isLast ? { text: redactor.whole(held + said), held: '' } : redactor.piece(held, said);
    if (judgement.held) tails[stream] = judgement.held;
    return judgement.text === said ? line : withText(judgement.text);
  }
}
