/**
 * Finds texts in raw transcript lines that continue a text of another line. Models and commands send their text in small pieces, each in a
 * separate JSON line.
 */

type JsonObject = Record<string, unknown>;

/** A piece of text in a line. The text continues in other lines. */
interface Piece {
  /**
   * Key of the stream to which the piece belongs. The held text of the stream is stored under this key. `lineOf` can make a line from the
   * key.
   */
  readonly stream: string;
  readonly text: string;
  /** Returns the line with its text replaced by `text`. */
  with(text: string): string;
}

export interface TranscriptLine {
  /** Absent if no text of the line continues in other lines. */
  readonly piece?: Piece;
  /** The member `update` of an ACP `session/update` message; absent if the line is not such a message. */
  readonly update?: JsonObject;
  readonly session?: unknown;
}

/** Limits the length of a stream's key, because the key contains ids from a harness and is stored together with the held text. */
const maxStreamChars = 1_000;

const asObject = (value: unknown): JsonObject | undefined =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as JsonObject) : undefined;

const streamPrefix = 'line ';
const streamOf = (shape: JsonObject): string => `${streamPrefix}${JSON.stringify(shape)}`;

/** Returns the ids that all pieces of a stream have in common. */
export const shapeOf = (stream: string): JsonObject => JSON.parse(stream.slice(streamPrefix.length)) as JsonObject;

/** Returns true for a stream of transcript lines. */
export const isLineStream = (stream: string): boolean => stream.startsWith(streamPrefix);

/** Returns true for chunks of an agent's messages and thoughts, which the conversation also joins. */
export const isChunk = (kind: unknown): boolean => typeof kind === 'string' && kind.endsWith('_chunk');

/** Reads a line: JSON-RPC from a harness, a line that the agent wrapped as `{raw}`, or any other text. */
export function readLine(line: string): TranscriptLine {
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
  if (members && typeof members.raw === 'string') {
    const piece = pieceAt(members, 'raw', { raw: true });
    return piece ? { piece } : {};
  }
  const params = asObject(members?.params);
  const update = asObject(params?.update);
  if (!update) return {};
  const { sessionUpdate, toolCallId, messageId } = update;
  const session = params?.sessionId;
  const withoutPiece = { update, session };
  if (isChunk(sessionUpdate)) {
    const content = asObject(update.content);
    const piece = content && pieceAt(content, 'text', { session, sessionUpdate, messageId });
    return piece ? { ...withoutPiece, piece } : withoutPiece;
  }
  const meta = asObject(update._meta);
  for (const output of ['terminal_output_delta', 'terminal_output']) {
    const place = asObject(meta?.[output]);
    const piece = place && pieceAt(place, 'data', { session, toolCallId, output });
    if (piece) return { ...withoutPiece, piece };
  }
  return withoutPiece;
}

/** Makes a separate line from the held text of a stream that has ended. */
export function lineOf(stream: string, text: string): string {
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
