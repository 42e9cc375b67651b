import type { TokenCounts } from '../../../team/models/price.ts';
import type { ProviderName } from '../../../team/models/providers.ts';
import { anthropicRules } from './requests/anthropic.ts';
import { googleRules } from './requests/google.ts';
import { openAiChatRules } from './requests/openai-chat.ts';
import { openAiResponsesRules } from './requests/openai-responses.ts';
import type { RequestRules } from './requests/rules.ts';
import { anthropicUsage } from './usage/anthropic.ts';
import { count, member, noTokens, type Protocol, rest, type UsageReader } from './usage/counts.ts';
import { googleUsage } from './usage/google.ts';
import { openAiChatUsage } from './usage/openai-chat.ts';

/** `usage` of OpenAI Responses: `input_tokens` includes the tokens that were read from and written to the cache. */
function read(seen: TokenCounts, usage: unknown): TokenCounts {
  const inputTokens = count(member(usage, 'input_tokens'));
  if (inputTokens === undefined) return seen;
  const details = member(usage, 'input_tokens_details');
  const cacheRead = count(member(details, 'cached_tokens')) ?? 0;
  const cacheWrite = count(member(details, 'cache_write_tokens')) ?? 0;
  const long = count(member(member(details, 'cache_write_tokens_details'), 'ttl_12h_tokens')) ?? 0;
  return {
    input: rest(inputTokens, cacheRead, cacheWrite),
    output: count(member(usage, 'output_tokens')) ?? 0,
    cacheRead,
    cacheWrite,
    cacheWriteLong: Math.min(long, cacheWrite),
  };
}

/** OpenAI Responses: the last event has all counts, whether its kind is completed, incomplete or failed. */
export const openAiResponsesUsage: UsageReader = {
  event: (seen, event) => read(seen, member(member(event, 'response'), 'usage')),
  body: (body) => read(noTokens, member(body, 'usage')),
};

const protocols: Readonly<Record<Protocol, { readonly rules: RequestRules; readonly usage: UsageReader }>> = {
  anthropic: { rules: anthropicRules, usage: anthropicUsage },
  'openai-chat': { rules: openAiChatRules, usage: openAiChatUsage },
  'openai-responses': { rules: openAiResponsesRules, usage: openAiResponsesUsage },
  google: { rules: googleRules, usage: googleUsage },
};

/**
 * An endpoint of a provider that a sandbox may reach. The gateway itself answers `models`. `model`: the model in the path; absent if the
 * body names the model.
 */
export type Endpoint =
  | { readonly kind: 'models' }
  | {
      /** `count` counts tokens: free of charge, not recorded. */
      readonly kind: 'generate' | 'count';
      readonly path: string;
      readonly protocol: Protocol;
      readonly model?: string;
    };

type Served = Exclude<Endpoint, { kind: 'models' }>;

/** Returns the rules by which requests to an endpoint are checked. */
export const rulesOf = ({ protocol }: Served): RequestRules => protocols[protocol].rules;

/** Returns the reader of the usage in answers of an endpoint. */
export const usageReaderOf = ({ protocol }: Served): UsageReader => protocols[protocol].usage;

const generate = (path: string, protocol: Protocol): Endpoint => ({ kind: 'generate', path, protocol });

/** Endpoints that sandboxes may reach. A sandbox cannot reach any other endpoint: no files, no batches, no stored answers of other runs. */
const fixed: Readonly<Record<ProviderName, Readonly<Record<string, Endpoint>>>> = {
  anthropic: {
    'POST /messages': generate('/messages', 'anthropic'),
    'POST /messages/count_tokens': { kind: 'count', path: '/messages/count_tokens', protocol: 'anthropic' },
    'GET /models': { kind: 'models' },
  },
  openai: {
    'POST /responses': generate('/responses', 'openai-responses'),
    'POST /chat/completions': generate('/chat/completions', 'openai-chat'),
    'GET /models': { kind: 'models' },
  },
  google: { 'GET /models': { kind: 'models' } },
  local: {
    'POST /responses': generate('/responses', 'openai-responses'),
    'POST /chat/completions': generate('/chat/completions', 'openai-chat'),
    'GET /models': { kind: 'models' },
  },
};

const googlePath = /^\/models\/([A-Za-z0-9._-]+)(?::|%3[Aa])(generateContent|streamGenerateContent|countTokens)$/;

/**
 * The path of a provider's API without versions. Some clients expect an address with the version, and others add the version, so the path
 * of a request may have no version, one or two. All these paths lead to the version in the service's configuration. For Google this is
 * right because `v1beta` contains all of `v1`.
 */
const belowVersions = /^(?:\/v1(?:beta)?){0,2}(\/.*)$/;

/** Path of a provider at the gateway. The paths of the provider's versions begin with this path. */
export const gatewayRootOf = (provider: ProviderName): string => `/api/v1/gateway/${provider}`;

/** Returns the endpoint for `path`, the request's raw path from the server's root on, without its query. */
export function endpointOf(provider: ProviderName, method: string, path: string): Endpoint | undefined {
  const root = gatewayRootOf(provider);
  const [, below = ''] = (path.startsWith(root) && belowVersions.exec(path.slice(root.length))) || [];
  const key = `${method} ${below}`;
  if (Object.hasOwn(fixed[provider], key)) return fixed[provider][key];
  const [, model, action] = (provider === 'google' && method === 'POST' && googlePath.exec(below)) || [];
  if (model === undefined || action === undefined) return undefined;
  const upstreamPath = `/models/${model}:${action}`;
  return { kind: action === 'countTokens' ? 'count' : 'generate', path: upstreamPath, protocol: 'google', model };
}

/** Returns a sentence that names the endpoints of a provider. It is for the refusal of requests to other endpoints. */
export function describeEndpoints(provider: ProviderName): string {
  const google =
    provider === 'google' ? ['POST /models/{model}:generateContent, streamGenerateContent, countTokens'] : [];
  return `the gateway has no such endpoint of this provider; it has ${[...Object.keys(fixed[provider]), ...google].join(', ')}`;
}
