import { joinAround, leftOutMark, maxMarkBytes, wholeLinesOfTail } from '@runyard/contract/wire/left-out';

/** The numbers of bytes and lines of an output that its shortened text omits. */
export interface LeftOut {
  readonly bytes: number;
  readonly lines: number;
}

/**
 * Keeps the first and last bytes of a UTF-8 output, and its length, in constant memory. If the last eighth of the head contains a line
 * end, the head ends at this line end.
 */
export interface OutputWindow {
  /** Returns the part of the chunk that belongs to the head. */
  push(chunk: Buffer): Buffer;
  readonly totalBytes: number;
  readonly truncated: boolean;
  /** The amount of output that `text()` omits. */
  readonly leftOut: LeftOut;
  /** Adds to `leftOut` the bytes and lines that were already missing in the output that `push` got. */
  addLeftOut(leftOut: LeftOut): void;
  /** Returns the whole output. If bytes were omitted, returns the head, a line with the size of the omitted part, and the tail. */
  text(): string;
  /** Returns the bytes after the head, if no bytes were omitted. */
  afterHead(): Buffer;
  /** Returns the part of `text()` after the head. Call it only if bytes were omitted. */
  markAndTail(): string;
  /** Returns only the end of the output. */
  tailText(): string;
}

const newline = 0x0a;
/** Maximum number of bytes of the head of a shortened output, and of its tail together with the marks. */
export const halfWindowBytes = 32 * 1024;

/** Bytes reserved for the marks that show an omission, and for the note after the output of an interrupted action. */
export const roomForMarks = 1024;

export function outputWindow(headBytes = halfWindowBytes, tailBytes = halfWindowBytes - roomForMarks): OutputWindow {
  const head: Buffer[] = [];
  let headSize = 0;
  let headLines = 0;
  let isHeadOpen = headBytes > 0;
  let tail: Buffer[] = [];
  let tailSize = 0;
  let total = 0;
  let lines = 0;

  /** Adds the part of the chunk that belongs to the head, and returns this part. */
  function pushHead(chunk: Buffer): Buffer {
    if (!isHeadOpen) return chunk.subarray(0, 0);
    const fits = chunk.subarray(0, headBytes - headSize);
    const lineEnd = fits.indexOf(newline, Math.max(0, Math.ceil((headBytes * 7) / 8) - 1 - headSize));
    const part = lineEnd === -1 ? fits : fits.subarray(0, lineEnd + 1);
    headSize += part.length;
    headLines += countNewlines(part);
    isHeadOpen = lineEnd === -1 && headSize < headBytes;
    head.push(Buffer.from(part));
    return part;
  }

  function pushTail(chunk: Buffer): void {
    if (chunk.length === 0) return;
    // Keep one byte more than the tail needs: if this byte is a newline, the tail begins with a whole line.
    const last = chunk.length > tailBytes ? chunk.subarray(chunk.length - tailBytes - 1) : chunk;
    // Copied, because a slice would keep the whole read buffer of the pipe in memory.
    tail.push(Buffer.from(last));
    tailSize += last.length;
    if (tailSize > 4 * tailBytes || tail.length > 1024) {
      const joined = Buffer.concat(tail);
      tail = [Buffer.from(joined.subarray(Math.max(0, joined.length - tailBytes - 1)))];
      tailSize = tail[0]?.length ?? 0;
    }
  }

  const isTruncated = () => total - headSize > tailBytes;

  function keptTail() {
    const end = Buffer.concat(tail);
    if (!isTruncated()) return { text: printable(end), cutsLine: false };
    return wholeLinesOfTail(printable(withoutCutStart(end.subarray(Math.max(0, end.length - tailBytes - 1)))));
  }

  function leftOut(kept = keptTail()): LeftOut {
    const keptLines = headLines + countNewlines(Buffer.from(kept.text));
    return { bytes: total - headSize - Buffer.byteLength(kept.text), lines: lines - keptLines };
  }

  function around(headText: string): string {
    const keptText = keptTail();
    const { bytes, lines } = leftOut(keptText);
    return joinAround(headText, leftOutMark(bytes, lines), keptText);
  }

  const headText = () => printable(withoutCutEnd(Buffer.concat(head)));

  return {
    push(chunk) {
      total += chunk.length;
      lines += countNewlines(chunk);
      const part = pushHead(chunk);
      pushTail(chunk.subarray(part.length));
      return part;
    },
    get totalBytes() {
      return total;
    },
    get truncated() {
      return isTruncated();
    },
    get leftOut() {
      return isTruncated() ? leftOut() : { bytes: 0, lines: 0 };
    },
    addLeftOut(more) {
      total += more.bytes;
      lines += more.lines;
    },
    tailText() {
      const { text, cutsLine } = keptTail();
      return cutsLine ? `…${text}` : text;
    },
    afterHead: () => Buffer.concat(tail),
    markAndTail: () => around(headText()).slice(headText().length),
    text() {
      if (!isTruncated()) return printable(Buffer.concat([...head, ...tail]));
      return around(headText());
    },
  };
}

function countNewlines(bytes: Buffer): number {
  let count = 0;
  for (let at = bytes.indexOf(newline); at !== -1; at = bytes.indexOf(newline, at + 1)) count += 1;
  return count;
}

const printable = (bytes: Buffer): string => new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes);

/** Replaces NUL, because the database cannot store it in a text. */
export function withoutNul(text: string): string {
  return text.includes('\u0000') ? text.replaceAll('\u0000', '\uFFFD') : text;
}

/** Removes an incomplete character at the end, because its first bytes without the other bytes would look like invalid output. */
function withoutCutEnd(bytes: Buffer): Buffer {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes[bytes.length - back] ?? 0;
    if ((byte & 0xc0) === 0x80) continue;
    const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
    return length > back ? bytes.subarray(0, bytes.length - back) : bytes;
  }
  return bytes;
}

function withoutCutStart(bytes: Buffer): Buffer {
  let start = 0;
  while (start < 3 && start < bytes.length && ((bytes[start] ?? 0) & 0xc0) === 0x80) start++;
  return bytes.subarray(start);
}

/**
 * Shortens a text to at most `maxBytes`, which is at least 1 KB. The result has the head, the size of the omitted part, and the tail.
 * `leftOut`: the amount that was already missing in the middle of the given text.
 */
export function cutText(
  text: string,
  maxBytes: number,
  leftOut: LeftOut = { bytes: 0, lines: 0 },
): { text: string; truncated: boolean; totalBytes: number } {
  const totalBytes = Buffer.byteLength(text);
  if (totalBytes <= maxBytes) return { text, truncated: false, totalBytes };
  const half = Math.floor(maxBytes / 2);
  const window = outputWindow(half, half - maxMarkBytes);
  window.push(Buffer.from(text));
  window.addLeftOut(leftOut);
  return { text: window.text(), truncated: true, totalBytes };
}
