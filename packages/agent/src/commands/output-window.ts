/** Keeps the first and last bytes of an output of any size, and its length, in constant memory. */
export interface OutputWindow {
  push(chunk: Buffer): void;
  readonly totalBytes: number;
  readonly truncated: boolean;
  /** Returns the whole output, or head, a line with the number of missing bytes, and tail. Invalid UTF-8 and NUL become U+FFFD. */
  text(): string;
  /** Returns only the end of the output. */
  tailText(): string;
}

export function outputWindow(headBytes = 32 * 1024, tailBytes = 32 * 1024): OutputWindow {
  const head: Buffer[] = [];
  let headSize = 0;
  let tail: Buffer[] = [];
  let tailSize = 0;
  let total = 0;

  function pushTail(chunk: Buffer): void {
    const last = chunk.length > tailBytes ? chunk.subarray(chunk.length - tailBytes) : chunk;
    // Copied, because a slice would keep the whole read buffer of the pipe in memory.
    tail.push(Buffer.from(last));
    tailSize += last.length;
    if (tailSize > 4 * tailBytes || tail.length > 1024) {
      const joined = Buffer.concat(tail);
      tail = [Buffer.from(joined.subarray(Math.max(0, joined.length - tailBytes)))];
      tailSize = tail[0]?.length ?? 0;
    }
  }

  function keptTail(): Buffer {
    const end = Buffer.concat(tail);
    return end.subarray(Math.max(0, end.length - tailBytes));
  }

  return {
    push(chunk) {
      total += chunk.length;
      const room = headBytes - headSize;
      if (room > 0) {
        const first = Buffer.from(chunk.subarray(0, room));
        head.push(first);
        headSize += first.length;
      }
      if (chunk.length > room) pushTail(room > 0 ? chunk.subarray(room) : chunk);
    },
    get totalBytes() {
      return total;
    },
    get truncated() {
      return total > headBytes + tailBytes;
    },
    tailText: () => printable(withoutCutStart(keptTail())),
    text() {
      const kept = keptTail();
      if (total <= headBytes + tailBytes) return printable(Buffer.concat([...head, kept]));
      const omitted = total - headSize - kept.length;
      return `${printable(withoutCutEnd(Buffer.concat(head)))}\n[… ${omitted} bytes left out …]\n${printable(withoutCutStart(kept))}`;
    },
  };
}

/** Decodes UTF-8. Invalid bytes become U+FFFD, and NUL too, because text of the database cannot have it. */
function printable(bytes: Buffer): string {
  return withoutNul(new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes));
}

export function withoutNul(text: string): string {
  return text.includes('\u0000') ? text.replaceAll('\u0000', '\uFFFD') : text;
}

/** Removes a character that the cut has split, so that it does not look like invalid output. */
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

/** Cuts text of any size to about `maxBytes`: head, the number of missing bytes, tail. */
export function cutText(text: string, maxBytes: number): { text: string; truncated: boolean; totalBytes: number } {
  const totalBytes = Buffer.byteLength(text);
  if (totalBytes <= maxBytes) return { text, truncated: false, totalBytes };
  const window = outputWindow(Math.floor(maxBytes / 2), Math.floor(maxBytes / 2));
  window.push(Buffer.from(text));
  return { text: window.text(), truncated: true, totalBytes };
}
