import type { TokenCounts } from '../../../../team/models/price.ts';
import { count, member, noTokens, rest, type UsageReader } from './counts.ts';

/** `usage` of chat completions: `prompt_tokens` includes the cache. Some servers omit the details. */
function read(seen: TokenCounts, usage: unknown): TokenCounts {
  const promptTokens = count(member(usage, 'prompt_tokens'));
  if (promptTokens === undefined) return seen;
  const details = member(usage, 'prompt_tokens_details');
  const cacheRead = count(member(details, 'cached_tokens')) ?? 0;
  const cacheWrite = count(member(details, 'cache_write_tokens')) ?? 0;
  return {
    input: rest(promptTokens, cacheRead, cacheWrite),
    output: count(member(usage, 'completion_tokens')) ?? 0,
    cacheRead,
    cacheWrite,
    cacheWriteLong: 0,
  };
}

/**
 * Reads the usage of chat completions. If `stream_options.include_usage` is set, the chunk after the last choice has the counts. Servers
 * that send counts in each chunk send totals.
 */
export const openAiChatUsage: UsageReader = {
  event: (seen, event) => read(seen, member(event, 'usage')),
  body: (body) => read(noTokens, member(body, 'usage')),
};
