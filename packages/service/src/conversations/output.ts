import { maxOutputBytes } from '@runyard/contract/conversations';

/** Output of an action that grows; keeps at most the first and last half of `maxOutputBytes`. */
export interface GrowingOutput {
  append(text: string): void;
  /** Bytes that the action put out where the agent cut them already. */
  setTotal(bytes: number): void;
  read(): string;
}

const half = maxOutputBytes / 2;
const bytesOf = (text: string): number => Buffer.byteLength(text);

/** The longest beginning of at most `max` bytes that ends between two characters. */
export function headOf(text: string, max: number): string {
  const bytes = Buffer.from(text);
  if (bytes.length <= max) return text;
  let end = max;
  // A continuation byte at the cut: go back to before the first byte of its character.
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1;
  return bytes.subarray(0, end).toString();
}

/** The longest end of at most `max` bytes that begins between two characters. */
function tailOf(text: string, max: number): string {
  const bytes = Buffer.from(text);
  if (bytes.length <= max) return text;
  let start = bytes.length - max;
  while (start < bytes.length && ((bytes[start] ?? 0) & 0xc0) === 0x80) start += 1;
  return bytes.subarray(start).toString();
}

const leftOut = (bytes: number) => `\n… ${bytes} bytes left out …\n`;

export function growingOutput(): GrowingOutput {
  let head = '';
  let tail = '';
  let seen = 0;
  let told = 0;
  return {
    append: (text) => {
      seen += bytesOf(text);
      const room = half - bytesOf(head);
      const first = tail === '' ? headOf(text, Math.max(room, 0)) : '';
      head += first;
      tail += text.slice(first.length);
      // Cut now and then, not at each piece: the tail is rewritten by it.
      if (tail.length > maxOutputBytes) tail = tailOf(tail, half);
    },
    setTotal: (bytes) => {
      told = Math.max(told, bytes);
    },
    read: () => {
      const end = tailOf(tail, half);
      const missing = Math.max(seen, told) - bytesOf(head) - bytesOf(end);
      if (missing <= 0) return head + end;
      // The agent's own note of what it cut stands where it put it.
      return seen > bytesOf(head) + bytesOf(end) ? head + leftOut(missing) + end : head + end;
    },
  };
}

/** A result as the conversation holds it: as it is, or head, tail and size where it is too large. */
export function summarised(output: unknown): unknown {
  const text = typeof output === 'string' ? output : JSON.stringify(output);
  if (text === undefined || text.length * 3 <= maxOutputBytes || bytesOf(text) <= maxOutputBytes) return output;
  const head = headOf(text, half);
  const tail = tailOf(text, half);
  const size = bytesOf(text);
  if (typeof output === 'string') return head + leftOut(size - bytesOf(head) - bytesOf(tail)) + tail;
  return { head, tail, size_bytes: size };
}
