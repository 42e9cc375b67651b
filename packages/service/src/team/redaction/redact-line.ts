/**
 * Removes secrets from raw transcript lines, even if a secret continues in the next line. Text at the end of a piece that may be the
 * beginning of a secret is held back and redacted together with the next piece of the same stream.
 */

import type { Redactor } from '@runyard/system/redaction/redactor';
import type { HeldTexts } from './held-texts.ts';
import { isChunk, isLineStream, lineOf, readLine, shapeOf, type TranscriptLine } from './transcript-line.ts';

/** Returns the streams that end with this line: another message or a tool call ends a message, its end ends a command's output. */
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

/** Returns the held text of a stream as a line; undefined if there is none. Removes it from `held`. */
export function releaseLine(stream: string, held: HeldTexts): string | undefined {
  const text = held[stream];
  delete held[stream];
  return text ? lineOf(stream, text) : undefined;
}

/** Returns the line without secrets, after the held texts of the streams that it ends. Changes `held`. */
export function redactLine(line: string, redactor: Redactor, held: HeldTexts): string[] {
  const read = readLine(line);
  const { piece } = read;
  const ended = endedBy(read, held);
  const released = ended.filter((stream) => stream !== piece?.stream).map((stream) => releaseLine(stream, held));
  const withRedactedPiece = (): string => {
    if (!piece) return line;
    const before = held[piece.stream] ?? '';
    delete held[piece.stream];
    const isLast = ended.includes(piece.stream);
    const clean = isLast ? { text: redactor.whole(before + piece.text), held: '' } : redactor.piece(before, piece.text);
    if (clean.held) held[piece.stream] = clean.held;
    return clean.text === piece.text ? line : piece.with(clean.text);
  };
  return [...released.filter((each) => each !== undefined), redactor.whole(withRedactedPiece())];
}
