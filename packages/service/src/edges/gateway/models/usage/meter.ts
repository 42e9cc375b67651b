import type { TokenCounts } from '../../../../team/models/price.ts';
import type { PassedTokens } from './at-least.ts';
import { noTokens, type UsageReader } from './counts.ts';
import type { ToolCounter } from './tool-calls.ts';

/** Counts the tokens of one answer while its bytes are forwarded. */
export interface UsageMeter {
  push(bytes: Uint8Array): void;
  /** Returns the counted tokens, also if the answer was cut. Called once, after the last byte. */
  counts(): TokenCounts;
  /** Returns the tokens that were forwarded: at least one for each event of a stream, or one for every eight bytes of a body. */
  passedTokens(): PassedTokens;
}

/** A longer line or body is forwarded but not read, so the memory of the meter is bounded. */
const maxBytes = 16 * 1024 * 1024;
const newline = 10;

/** Almost all lines are shorter than this. A buffer that has grown beyond this size is not used again for the next line. */
const usualBytes = 64 * 1024;

/**
 * Collects bytes up to a limit; above the limit, it drops all of them. Uses one buffer: for a provider that sends single bytes, a list of
 * pieces would take a hundred times the memory.
 */
function pile(): { add(bytes: Uint8Array): void; take(): string } {
  let buffer: Buffer = Buffer.alloc(0);
  let size = 0;
  return {
    add: (bytes) => {
      const from = size;
      size += bytes.byteLength;
      if (size > maxBytes) {
        buffer = Buffer.alloc(0);
        return;
      }
      if (size > buffer.byteLength) {
        const larger = Buffer.allocUnsafeSlow(Math.min(maxBytes, Math.max(size, buffer.byteLength * 2)));
        buffer.copy(larger, 0, 0, from);
        buffer = larger;
      }
      buffer.set(bytes, from);
    },
    take: () => {
      const text = size > maxBytes ? '' : buffer.toString('utf8', 0, size);
      if (buffer.byteLength > usualBytes) buffer = Buffer.alloc(0);
      size = 0;
      return text;
    },
  };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Meter of server-sent events: one JSON document in each `data:` line, as in all four protocols. */
function streamMeter(reader: UsageReader, tools: ToolCounter | undefined): UsageMeter {
  let seen = noTokens;
  let events = 0;
  let size = 0;
  let shortest = Number.POSITIVE_INFINITY;
  let lineBytes = 0;
  const line = pile();
  const endLine = (): void => {
    const text = line.take();
    const bytes = lineBytes;
    lineBytes = 0;
    if (!text.startsWith('data:') || text.startsWith('data: [DONE]')) return;
    events += 1;
    size += bytes;
    shortest = Math.min(shortest, bytes);
    // Most events hold no usage: they are not parsed.
    if (!tools && !text.includes('"usage')) return;
    const event = parse(text.slice(5));
    seen = reader.event(seen, event);
    tools?.read(event);
  };
  return {
    push: (bytes) => {
      let from = 0;
      for (let at = bytes.indexOf(newline); at >= 0; at = bytes.indexOf(newline, from)) {
        line.add(bytes.subarray(from, at));
        lineBytes += at - from;
        endLine();
        from = at + 1;
      }
      if (from < bytes.byteLength) line.add(bytes.subarray(from));
      lineBytes += bytes.byteLength - from;
    },
    counts: () => {
      endLine();
      return seen;
    },
    passedTokens: () => {
      // The shortest event is assumed to have no text. The additional bytes of other events are text, with four bytes for each token.
      const text = events > 0 ? size - events * shortest : 0;
      return { least: events, estimate: Math.max(events, Math.floor(text / 4)) };
    },
  };
}

/** Meter of an answer in one JSON document. */
function bodyMeter(reader: UsageReader, tools: ToolCounter | undefined): UsageMeter {
  const body = pile();
  let seen: TokenCounts | undefined;
  let size = 0;
  return {
    push: (bytes) => {
      size += bytes.byteLength;
      body.add(bytes);
    },
    counts: () => {
      if (seen) return seen;
      const whole = parse(body.take());
      tools?.read(whole);
      seen = reader.body(whole);
      return seen;
    },
    passedTokens: () => ({ least: Math.floor(size / 8), estimate: Math.floor(size / 8) }),
  };
}

/** Returns a meter for an answer of this content type. `tools` counts the calls of the provider's own tools. */
export function openMeter(reader: UsageReader, contentType: string | undefined, tools?: ToolCounter): UsageMeter {
  return contentType?.startsWith('text/event-stream') ? streamMeter(reader, tools) : bodyMeter(reader, tools);
}
