import type { TokenCounts } from '../../../../team/models/price.ts';
import { count, member, noTokens, type UsageReader } from './counts.ts';

/**
 * `usage` of Anthropic: `input_tokens` excludes the cache. A member that is missing or null keeps the last value, because `message_delta`
 * repeats only some of the members, as totals.
 */
function read(seen: TokenCounts, usage: unknown): TokenCounts {
  const creation = member(usage, 'cache_creation');
  let input = count(member(usage, 'input_tokens')) ?? seen.input;
  let output = count(member(usage, 'output_tokens')) ?? seen.output;
  // With compaction, the totals exclude the compacting iterations, although these are billed. After a fallback at the provider, the totals
  // are right. Documented under "iterations" in platform.claude.com/docs/en/build-with-claude/compaction.
  const list = member(usage, 'iterations');
  const iterations = Array.isArray(list) ? list : [];
  const own = iterations.filter((each) => ['message', 'compaction'].includes(String(member(each, 'type'))));
  const fallback = iterations.some((each) => member(each, 'type') === 'fallback_message');
  if (own.length > 0 && !fallback) {
    const sum = (name: string): number => own.reduce((all, each) => all + (count(member(each, name)) ?? 0), 0);
    input = sum('input_tokens');
    output = sum('output_tokens');
  }
  return {
    input,
    output,
    cacheRead: count(member(usage, 'cache_read_input_tokens')) ?? seen.cacheRead,
    cacheWrite: count(member(usage, 'cache_creation_input_tokens')) ?? seen.cacheWrite,
    cacheWriteLong: count(member(creation, 'ephemeral_1h_input_tokens')) ?? seen.cacheWriteLong,
  };
}

/** Anthropic Messages: the prompt is counted in `message_start`, the answer in `message_delta`. */
export const anthropicUsage: UsageReader = {
  event: (seen, event) => {
    const type = member(event, 'type');
    if (type === 'message_start') return read(seen, member(member(event, 'message'), 'usage'));
    return type === 'message_delta' ? read(seen, member(event, 'usage')) : seen;
  },
  body: (body) => read(noTokens, member(body, 'usage')),
};
