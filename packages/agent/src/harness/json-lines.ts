import { firstPart } from '@runyard/contract/shorten';

/** One line, or the beginning of one that was too long to be kept. */
export interface Line {
  text: string;
  /** Bytes of the whole line, where it was cut. */
  cutFrom?: number;
}

/**
 * Splits bytes into lines in bounded memory: of a line over `maxBytes` the first `keptBytes` are kept and the rest is
 * counted. A message that was cut cannot be parsed, so it is lost as a message, but told in the transcript.
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
    // Over the limit: shrink to what is kept once, then only count.
    const held = chunks.reduce((sum, chunk) => sum + chunk.length, 0);
    if (held < keptBytes) chunks.push(part);
    if (chunks.length > 1 || held > keptBytes) chunks = [Buffer.concat(chunks).subarray(0, keptBytes)];
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
