/** Asks a provider for its list of models, which costs nothing: to end an outage, and to test a key. */
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import https from 'node:https';
import type { TestModelProviderResponse } from '@runyard/contract/team/model-providers';
import { http } from '@runyard/system/node-http';
import { agentFor } from '@runyard/system/outgoing/outgoing';
import { connectionReason } from '../../../team/models/connection-reason.ts';
import { lookupFor, type ProviderName, providerKinds, type Upstream } from '../../../team/models/providers.ts';
import { credentialHeaders } from './credentials.ts';

const timeoutMs = 10_000;

/** `reason`: the end of a sentence. It contains no text of the provider. */
type Answer =
  | { readonly kind: 'answered'; readonly status: number; readonly isPage: boolean }
  | { readonly kind: 'failed'; readonly reason: string };

/** Requests `GET …/models`. Waits at most 10 s, follows no redirect, does not read the body, and never throws. */
async function askProvider(provider: ProviderName, upstream: Upstream): Promise<Answer> {
  const url = new URL(`${upstream.baseUrl}/models`);
  const { get } = url.protocol === 'https:' ? https : http;
  const version = provider === 'anthropic' ? { 'anthropic-version': '2023-06-01' } : {};
  try {
    const signal = AbortSignal.timeout(timeoutMs);
    const headers = { accept: 'application/json', ...version, ...credentialHeaders(provider, upstream) };
    const lookup = await lookupFor(upstream, url, signal);
    const request = get(url, { headers, signal, lookup, agent: agentFor(url) });
    const [response] = (await once(request, 'response', { signal })) as [IncomingMessage];
    const isPage = (response.headers['content-type'] ?? '').startsWith('text/html');
    response.on('error', () => {}).destroy();
    return { kind: 'answered', status: response.statusCode ?? 502, isPage };
  } catch (error) {
    if (error instanceof Error && (error.name === 'AbortError' || error.name === 'TimeoutError'))
      return { kind: 'failed', reason: `did not answer within ${timeoutMs / 1_000} s` };
    return { kind: 'failed', reason: `cannot be reached${connectionReason(error as NodeJS.ErrnoException)}` };
  }
}

/** Returns whether the provider answers a request of the service with a status below 500. */
export async function probeProvider(provider: ProviderName, upstream: Upstream): Promise<boolean> {
  const answer = await askProvider(provider, upstream);
  return answer.kind === 'answered' && answer.status < 500;
}

/** Tests whether a provider accepts its key. The message is a sentence without text of the provider, and without the key. */
export async function testProvider(provider: ProviderName, upstream: Upstream): Promise<TestModelProviderResponse> {
  const name = providerKinds[provider].displayName;
  const answer = await askProvider(provider, upstream);
  if (answer.kind === 'failed') return { works: false, message: `${name} ${answer.reason}.` };
  const { status, isPage } = answer;
  if (status === 200 && !isPage)
    return { works: true, message: upstream.key === undefined ? `${name} answers.` : `${name} accepts the key.` };
  return { works: false, message: `${name} ${describeStatus(provider, status, isPage)}.` };
}

function describeStatus(provider: ProviderName, status: number, isPage: boolean): string {
  if (isPage) return 'answered with a web page: the base URL is not that of an API';
  // Google answers 400 to a wrong key.
  if (status === 401 || status === 403 || (status === 400 && provider === 'google'))
    return `refuses the key (status ${status})`;
  if (status === 404) return 'does not know the path (status 404): check the base URL';
  if (status === 429)
    return 'takes no more requests with this key now (status 429): its limit or its credit is used up';
  if (status >= 300 && status < 400) return `redirects (status ${status}): check the base URL`;
  return `has a fault (status ${status})`;
}
