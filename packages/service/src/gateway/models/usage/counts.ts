import type { TokenCounts } from '../../../models/price.ts';

/** Nothing seen. */
export const noTokens: TokenCounts = Object.freeze({
  input: 0,
  output: 0,
  cacheRead: 0,
  cacheWrite: 0,
  cacheWriteLong: 0,
});

/** How a protocol tells of tokens. Both are pure and take anything: what they do not understand leaves `seen` as it is. */
export interface UsageReader {
  /** One event of a streamed answer. */
  readonly event: (seen: TokenCounts, event: unknown) => TokenCounts;
  /** The body of an answer in one piece. */
  readonly body: (body: unknown) => TokenCounts;
}

/** The member `name` of an object that came from outside. */
export function member(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined;
  return (value as Record<string, unknown>)[name];
}

/** A number of tokens that came from outside; undefined where it is none. A database bigint holds each of them. */
export function count(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : undefined;
}

/** Returns `all` minus `parts`, never below 0, whatever a provider reports. */
export function rest(all: number, ...parts: number[]): number {
  return Math.max(
    0,
    parts.reduce((left, part) => left - part, all),
  );
}
