import type { TokenCounts } from '../../../../team/models/price.ts';
import { count, member, noTokens, rest, type UsageReader } from './counts.ts';

/** `usage` of OpenAI Responses: `input_tokens` includes the tokens that were read from and written to the cache. */
function read(seen: TokenCounts, usage: unknown): TokenCounts {
  const all = count(member(usage, 'input_tokens'));
  if (all === undefined) return seen;
  const details = member(usage, 'input_tokens_details');
  const cacheRead = count(member(details, 'cached_tokens')) ?? 0;
  const cacheWrite = count(member(details, 'cache_write_tokens')) ?? 0;
  const long = count(member(member(details, 'cache_write_tokens_details'), 'ttl_12h_tokens')) ?? 0;
  return {
    input: rest(all, cacheRead, cacheWrite),
    output: count(member(usage, 'output_tokens')) ?? 0,
    cacheRead,
    cacheWrite,
    cacheWriteLong: Math.min(long, cacheWrite),
  };
}

/** OpenAI Responses: the last event has all counts, whatever its kind (completed, incomplete, failed). */
export const openAiResponsesUsage: UsageReader = {
  event: (seen, event) => read(seen, member(member(event, 'response'), 'usage')),
  body: (body) => read(noTokens, member(body, 'usage')),
};
