import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import https from 'node:https';
import { systemNames } from '@runyard/system/names/resolver';
import { http } from '@runyard/system/node-http';
import type { ProviderName, Upstream } from '../../../team/models/providers.ts';
import { credentialHeaders } from '../models/credentials.ts';

const timeoutMs = 10_000;

/**
 * Returns whether a provider answers `GET …/models`, which costs nothing, with a status below 500. Waits at most 10 s, follows no
 * redirect, reads nothing of the body, and never throws.
 */
export async function probeProvider(provider: ProviderName, upstream: Upstream): Promise<boolean> {
  const url = new URL(`${upstream.baseUrl}/models`);
  const { get } = url.protocol === 'https:' ? https : http;
  const version = provider === 'anthropic' ? { 'anthropic-version': '2023-06-01' } : {};
  try {
    const signal = AbortSignal.timeout(timeoutMs);
    const headers = { accept: 'application/json', ...version, ...credentialHeaders(provider, upstream) };
    const request = get(url, { headers, signal, lookup: systemNames.lookup, agent: false });
    const [response] = (await once(request, 'response', { signal })) as [IncomingMessage];
    const status = response.statusCode ?? 502;
    response.on('error', () => {}).destroy();
    return status < 500;
  } catch {
    return false;
  }
}
