import type { TokenCounts } from '../../../../team/models/price.ts';

/** The protocol of requests and answers. */
export type Protocol = 'anthropic' | 'openai-chat' | 'openai-responses' | 'google';

/** No tokens counted yet. */
export const noTokens: TokenCounts = Object.freeze({
  input: 0,
  output: 0,
  cacheRead: 0,
  cacheWrite: 0,
  cacheWriteLong: 0,
});

/**
 * Reads the token counts of a protocol. Both functions are pure and accept any input: unknown input leaves `seen` unchanged.
 */
export interface UsageReader {
  /** Reads one event of a streamed answer. */
  readonly event: (seen: TokenCounts, event: unknown) => TokenCounts;
  /** Reads the body of an answer in one piece. */
  readonly body: (body: unknown) => TokenCounts;
}

/** Returns the member `name` of an untrusted object. */
export function member(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined;
  return (value as Record<string, unknown>)[name];
}

/** Returns an untrusted number of tokens; undefined if it is not a number. Every returned number fits into a database bigint. */
export function count(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : undefined;
}

/** Returns `all` minus `parts`, never below 0, even if a provider reports more. */
export function rest(all: number, ...parts: number[]): number {
  return Math.max(
    0,
    parts.reduce((left, part) => left - part, all),
  );
}
