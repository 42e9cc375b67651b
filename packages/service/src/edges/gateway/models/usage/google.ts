import type { TokenCounts } from '../../../../team/models/price.ts';
import { count, member, noTokens, rest, type UsageReader } from './counts.ts';

/**
 * `usageMetadata` of Google, with totals in each chunk. `promptTokenCount` includes the cache. `candidatesTokenCount` excludes the
 * thoughts, which are billed as output. Prompts of Google's own tools are billed as input.
 */
function read(seen: TokenCounts, usage: unknown): TokenCounts {
  const prompt = count(member(usage, 'promptTokenCount'));
  if (prompt === undefined) return seen;
  const cacheRead = count(member(usage, 'cachedContentTokenCount')) ?? 0;
  const ofTools = count(member(usage, 'toolUsePromptTokenCount')) ?? 0;
  const answer = count(member(usage, 'candidatesTokenCount')) ?? 0;
  const thoughts = count(member(usage, 'thoughtsTokenCount')) ?? 0;
  return {
    input: rest(prompt + ofTools, cacheRead),
    output: answer + thoughts,
    cacheRead,
    cacheWrite: 0,
    cacheWriteLong: 0,
  };
}

/** Reads the usage of Google's generateContent, streamed or not. */
export const googleUsage: UsageReader = {
  event: (seen, event) => read(seen, member(event, 'usageMetadata')),
  // A stream without `alt=sse` is an array of chunks.
  body: (body) =>
    (Array.isArray(body) ? body : [body]).reduce(
      (seen: TokenCounts, each) => read(seen, member(each, 'usageMetadata')),
      noTokens,
    ),
};
