import type { IncomingHttpHeaders } from 'node:http';
import type { ProviderName, Upstream } from '../../../team/models/providers.ts';

/** A longer text is not one of our tokens and is not looked up. */
const maxTokenChars = 500;

const single = (headers: IncomingHttpHeaders, name: string): string | undefined => {
  const value = headers[name];
  return typeof value === 'string' ? value : undefined;
};

/** Returns the token after `Bearer`, or the password of `Basic`. */
function authorization(value: string | undefined): string | undefined {
  const bearer = /^Bearer +(\S+)$/i.exec(value ?? '')?.[1];
  if (bearer !== undefined) return bearer;
  const basic = /^Basic +([A-Za-z0-9+/=]+)$/i.exec(value ?? '')?.[1];
  if (basic === undefined) return undefined;
  const text = Buffer.from(basic, 'base64').toString('utf8');
  return text.includes(':') ? text.slice(text.indexOf(':') + 1) : undefined;
}

/**
 * Returns the run token of a request. It is in one of the places where clients of the providers and git put a key: `Authorization` (bearer,
 * or password of basic), `x-api-key`, `x-goog-api-key`, `?key=`.
 */
export function runTokenOf(headers: IncomingHttpHeaders, query: URLSearchParams | undefined): string | undefined {
  const token =
    authorization(single(headers, 'authorization')) ??
    single(headers, 'x-api-key') ??
    single(headers, 'x-goog-api-key') ??
    query?.get('key') ??
    undefined;
  return token === undefined || token === '' || token.length > maxTokenChars ? undefined : token;
}

/** Returns the header with the real credential, in the form that the provider expects. */
export function credentialHeaders(provider: ProviderName, upstream: Upstream): Record<string, string> {
  if (upstream.key === undefined) return {};
  switch (provider) {
    case 'anthropic':
      return { 'x-api-key': upstream.key };
    case 'google':
      return { 'x-goog-api-key': upstream.key };
    case 'openai':
    case 'local':
      return { authorization: `Bearer ${upstream.key}` };
  }
}
