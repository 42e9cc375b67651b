import { type ProviderName, providerKinds } from '../../../team/models/providers.ts';
import { anthropicUsage } from './usage/anthropic.ts';
import type { UsageReader } from './usage/counts.ts';
import { googleUsage } from './usage/google.ts';
import { openAiChatUsage } from './usage/openai-chat.ts';
import { openAiResponsesUsage } from './usage/openai-responses.ts';

/**
 * An endpoint of a provider that a sandbox may reach. The gateway itself answers `models`. `model`: the model in the path; absent:
 * the body names it.
 */
export type Endpoint =
  | { readonly kind: 'models' }
  | { readonly kind: 'generate'; readonly path: string; readonly reader: UsageReader; readonly model?: string }
  /** Counts tokens: free of charge, not recorded. */
  | { readonly kind: 'count'; readonly path: string; readonly model?: string };

const generate = (path: string, reader: UsageReader): Endpoint => ({ kind: 'generate', path, reader });

/** Endpoints that sandboxes may reach. All others do not exist for a sandbox: no files, no batches, no stored answers of other runs. */
const fixed: Readonly<Record<ProviderName, Readonly<Record<string, Endpoint>>>> = {
  anthropic: {
    'POST /messages': generate('/messages', anthropicUsage),
    'POST /messages/count_tokens': { kind: 'count', path: '/messages/count_tokens' },
    'GET /models': { kind: 'models' },
  },
  openai: {
    'POST /responses': generate('/responses', openAiResponsesUsage),
    'POST /chat/completions': generate('/chat/completions', openAiChatUsage),
    'GET /models': { kind: 'models' },
  },
  google: { 'GET /models': { kind: 'models' } },
  local: {
    'POST /responses': generate('/responses', openAiResponsesUsage),
    'POST /chat/completions': generate('/chat/completions', openAiChatUsage),
    'GET /models': { kind: 'models' },
  },
};

const googlePath = /^\/models\/([A-Za-z0-9._-]+)(?::|%3[Aa])(generateContent|streamGenerateContent|countTokens)$/;

/** Returns the endpoint for `path`, the request's raw path from the server's root on, without its query. */
export function endpointOf(provider: ProviderName, method: string, path: string): Endpoint | undefined {
  const { gatewayPath } = providerKinds[provider];
  if (!path.startsWith(`${gatewayPath}/`)) return undefined;
  const below = path.slice(gatewayPath.length);
  const key = `${method} ${below}`;
  if (Object.hasOwn(fixed[provider], key)) return fixed[provider][key];
  const [, model, action] = (provider === 'google' && method === 'POST' && googlePath.exec(below)) || [];
  if (model === undefined || action === undefined) return undefined;
  const upstreamPath = `/models/${model}:${action}`;
  return action === 'countTokens'
    ? { kind: 'count', path: upstreamPath, model }
    : { kind: 'generate', path: upstreamPath, reader: googleUsage, model };
}
