import { maxOutputBytes } from '@runyard/contract/limits';
import {
  countLines,
  joinAround,
  leftOutMark,
  maxMarkBytes,
  type Tail,
  wholeLinesOfHead,
  wholeLinesOfTail,
} from '@runyard/contract/wire/left-out';

/** Collects the output of an action that arrives in pieces. Keeps only the beginning and the end of a long output. */
export interface GrowingOutput {
  append(text: string): void;
  /**
   * Sets the number of bytes that the action wrote. Call this function if the agent has already shortened the output, so the pieces have
   * fewer bytes.
   */
  setTotal(bytes: number): void;
  read(): string;
}

const half = maxOutputBytes / 2;
const bytesOf = (text: string): number => Buffer.byteLength(text);

/** Returns the longest beginning of at most `max` bytes that ends between two characters. */
export function headOf(text: string, max: number): string {
  const bytes = Buffer.from(text);
  if (bytes.length <= max) return text;
  let end = max;
  // Move a cut inside a character to the first byte of the character.
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1;
  return bytes.subarray(0, end).toString();
}

/** Returns the longest end of at most `max` bytes that begins between two characters. */
function tailOf(text: string, max: number): string {
  const bytes = Buffer.from(text);
  if (bytes.length <= max) return text;
  let start = bytes.length - max;
  while (start < bytes.length && ((bytes[start] ?? 0) & 0xc0) === 0x80) start += 1;
  return bytes.subarray(start).toString();
}

/**
 * Joins the whole lines of `head` and of `tail`, with a mark between them that counts the bytes and lines left out. `whole`: size of the
 * complete text.
 */
function around(head: string, tail: Tail, whole: { readonly bytes: number; readonly lines: number }): string {
  const first = wholeLinesOfHead(head);
  const bytes = whole.bytes - bytesOf(first) - bytesOf(tail.text);
  return joinAround(first, leftOutMark(bytes, whole.lines - countLines(first) - countLines(tail.text)), tail);
}

/** Size of the kept end of a long text, plus one byte before it. If this byte is a newline, the end begins with a whole line. */
const tailBytes = half - maxMarkBytes + 1;

/** Creates an empty output that keeps at most `maxOutputBytes`: the first half and the last half. */
export function growingOutput(): GrowingOutput {
  let head = '';
  let tail = '';
  let seen = 0;
  let lines = 0;
  let reported = 0;
  return {
    append: (text) => {
      seen += bytesOf(text);
      lines += countLines(text);
      const room = half - bytesOf(head);
      const first = tail === '' ? headOf(text, Math.max(room, 0)) : '';
      head += first;
      tail += text.slice(first.length);
      // Shortening copies the tail. So shorten the tail only when it has doubled, not after each piece.
      if (tail.length > maxOutputBytes) tail = tailOf(tail, half);
    },
    setTotal: (bytes) => {
      reported = Math.max(reported, bytes);
    },
    read: () => {
      // If only the agent has cut the output, the output already contains the mark for the part that is left out.
      if (seen <= bytesOf(head) + bytesOf(tailOf(tail, half))) return head + tail;
      const end = wholeLinesOfTail(tailOf(tail, tailBytes));
      // If the agent cut the output too, the number of lines is unknown here, so pass 0.
      return reported > seen
        ? around(head, end, { bytes: reported, lines: 0 })
        : around(head, end, { bytes: seen, lines });
    },
  };
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : (JSON.stringify(value) ?? ''));

// A UTF-16 code unit takes at most 3 bytes.
const isLong = (text: string, maxBytes: number): boolean => text.length * 3 > maxBytes && bytesOf(text) > maxBytes;

/**
 * Returns the text of an output, or the JSON of an output that is not text. If the result has more than `maxBytes` bytes, returns only its
 * beginning and its end, and a mark with the size of the part left out.
 */
export function summarisedText(output: unknown, maxBytes: number = maxOutputBytes): string {
  const text = textOf(output);
  if (!isLong(text, maxBytes)) return text;
  const whole = { bytes: bytesOf(text), lines: countLines(text) };
  const tail = tailOf(text, maxBytes / 2 - maxMarkBytes + 1);
  return around(headOf(text, maxBytes / 2), wholeLinesOfTail(tail), whole);
}

/**
 * Returns the input of an action, or the data of an event, as the object that the conversation shows. A value that is not an object is
 * returned in the member `text`. If the JSON of an object has more than `maxBytes` bytes, the result has the members `head`, `tail` and
 * `size_bytes` for this JSON.
 */
export function asObject(value: unknown, maxBytes: number = maxOutputBytes): Record<string, unknown> {
  if (value === undefined || value === null) return {};
  if (typeof value !== 'object' || Array.isArray(value)) return { text: summarisedText(value, maxBytes) };
  const text = textOf(value);
  if (!isLong(text, maxBytes)) return value as Record<string, unknown>;
  return { head: headOf(text, maxBytes / 2), tail: tailOf(text, maxBytes / 2), size_bytes: bytesOf(text) };
}
