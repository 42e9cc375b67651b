import { setImmediate as nextTurn } from 'node:timers/promises';
import type { TokenCounts } from '../../../../team/models/price.ts';

/** Contains 1 for each byte that base64 or base64url uses (RFC 4648), and 0 for other bytes. */
const isBase64 = Uint8Array.from({ length: 256 }, (_, byte) =>
  Number(/[A-Za-z0-9+/=_-]/.test(String.fromCharCode(byte))),
);
/** A longer sequence of base64 characters is an image or a file. Its size does not show how many tokens it takes. */
const longestWord = 999;
const bytesPerToken = 4;
/** Bytes of one slice. A slice takes about 1 ms; other work runs between two slices. */
const sliceBytes = 256 * 1024;

/** `text`: bytes of text so far. `word`: bytes of base64 at the end, which `text` does not include yet, because more may follow. */
interface Count {
  text: number;
  word: number;
}

function addSlice(count: Count, slice: Buffer): void {
  let { text, word } = count;
  // A `for…of` loop would be several times slower, because it uses an iterator.
  for (let at = 0; at < slice.length; at += 1) {
    if (isBase64[slice[at] as number] === 1) {
      word += 1;
      continue;
    }
    text += word > longestWord ? 1 : word + 1;
    word = 0;
  }
  count.text = text;
  count.word = word;
}

/**
 * Estimates the tokens of a request from its bytes: four bytes of text count as one token; encoded images and files do not count. The time
 * is linear in the size of the request.
 */
export async function estimateTokens(request: readonly Buffer[]): Promise<number> {
  const count: Count = { text: 0, word: 0 };
  for (const part of request) {
    for (let start = 0; start < part.length; start += sliceBytes) {
      if (start > 0) await nextTurn();
      addSlice(count, part.subarray(start, start + sliceBytes));
    }
  }
  const { text, word } = count;
  return Math.ceil((text + (word > longestWord ? 0 : word)) / bytesPerToken);
}

/** Tokens of an answer, estimated from its bytes. `least`: lower bound. */
export interface PassedTokens {
  readonly least: number;
  readonly estimate: number;
}

/**
 * Returns `reported`, with estimates in place of missing counts: the tokens of the request, and the tokens of the answer. The report of a
 * complete answer is used unchanged. The report of an answer that broke off may be too low, so `least` is its lower bound.
 */
export function usedAtLeast(
  reported: TokenCounts,
  isComplete: boolean,
  requestTokens: number,
  { least, estimate }: PassedTokens,
): TokenCounts {
  const isPromptReported = reported.input + reported.cacheRead + reported.cacheWrite > 0;
  if (isComplete && isPromptReported) return reported;
  const output = reported.output === 0 ? estimate : isComplete ? reported.output : Math.max(reported.output, least);
  return isPromptReported ? { ...reported, output } : { ...reported, input: requestTokens, output };
}
