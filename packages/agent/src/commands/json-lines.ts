import { firstPart } from '@runyard/contract/wire/shorten';

/** One line, or the beginning of a line that is too long. */
export interface Line {
  text: string;
  /** Number of bytes of the whole line. Absent if the line was not cut. */
  cutFrom?: number;
}

/**
 * Splits bytes into lines in bounded memory. If a line has more than `maxBytes`, returns only its first `keptBytes` and the number of
 * all its bytes.
 */
export function lineSplitter(maxBytes: number, keptBytes: number) {
  let chunks: Buffer[] = [];
  let size = 0;

  function append(part: Buffer): void {
    size += part.length;
    if (size <= maxBytes) {
      if (part.length > 0) chunks.push(part);
      return;
    }
    // The line is over the limit: keep only its first `keptBytes`, and only count the bytes that follow.
    const collected = chunks.reduce((sum, chunk) => sum + chunk.length, 0);
    if (collected < keptBytes) chunks.push(part);
    if (chunks.length > 1 || collected > keptBytes) chunks = [Buffer.concat(chunks).subarray(0, keptBytes)];
  }

  function take(): Line {
    const text = new TextDecoder().decode(Buffer.concat(chunks));
    const line: Line = size > maxBytes ? { text: firstPart(text, keptBytes), cutFrom: size } : { text };
    chunks = [];
    size = 0;
    return line;
  }

  return {
    *push(chunk: Buffer): Generator<Line> {
      let start = 0;
      for (let end = chunk.indexOf(10, start); end !== -1; end = chunk.indexOf(10, start)) {
        append(chunk.subarray(start, end));
        yield take();
        start = end + 1;
      }
      append(chunk.subarray(start));
    },
    *end(): Generator<Line> {
      if (size > 0) yield take();
    },
  };
}
