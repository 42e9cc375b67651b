/** The cookie of a browser session, and the defence against requests that other sites make a browser send. */

import { createHash, timingSafeEqual } from 'node:crypto';
import { browserSessionHours } from '@runyard/contract/team/browser-sessions';
import type { FastifyRequest } from 'fastify';
import { refuse } from '../../../platform/serving/refusal.ts';

/** A browser takes a cookie of this name only over https, from this very host (RFC 6265bis, 4.1.3.2). */
const secureName = '__Host-runyard';

const isLoopback = (hostname: string): boolean => /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/i.test(hostname);

/**
 * Returns the name of the cookie over plain HTTP, which is used on this machine only; null: the host is another machine. Cookies do not
 * tell ports apart, so the name does.
 */
function plainName(host: string | undefined): string | null {
  const url = URL.parse(`http://${host ?? ''}`);
  return url !== null && isLoopback(url.hostname) ? `runyard-${url.port || '80'}` : null;
}

/** Returns the value of a cookie; undefined: the browser sent none. */
function cookieOf(request: FastifyRequest, name: string): string | undefined {
  for (const pair of (request.headers.cookie ?? '').split(';')) {
    const [key, value] = pair.trim().split('=', 2);
    if (key === name) return value;
  }
  return undefined;
}

/** Returns the key of the session whose cookie the browser sent; undefined: none. */
export function sessionKeyOf(request: FastifyRequest): string | undefined {
  const name = plainName(request.headers.host);
  return cookieOf(request, secureName) ?? (name === null ? undefined : cookieOf(request, name));
}

/**
 * Returns the URL of the page that sent the request; null: no page of this service did. Browsers send `Origin` with every request that
 * changes something, and a page cannot set it (Fetch, 3.2); they send `Sec-Fetch-Site` on https and on localhost.
 */
function ownPageOf({ headers }: FastifyRequest, baseUrl: string): URL | null {
  const site = headers['sec-fetch-site'];
  if (site !== undefined && site !== 'same-origin') return null;
  const origin = URL.parse(headers.origin ?? '');
  if (origin === null) return null;
  return origin.origin === URL.parse(baseUrl)?.origin || origin.host === headers.host ? origin : null;
}

/** Returns the token that proves that a page of this service, which has read it, sent a request of the session. */
export const csrfTokenOf = (key: string): string => createHash('sha256').update(`csrf of ${key}`).digest('base64url');

/**
 * Throws the refusal of a request that another site made the browser send. Reads must not come from another site; everything else
 * carries the token of the session, from a page of this service.
 */
export function refuseForgery(request: FastifyRequest, key: string, baseUrl: string): void {
  const site = request.headers['sec-fetch-site'];
  if (site !== undefined && site !== 'same-origin' && site !== 'none')
    throw refuse('not_authorized', {
      detail: 'Another site sent this request. Only pages of this service use the session of a browser.',
    });
  if (request.method === 'GET' || request.method === 'HEAD') return;
  if (ownPageOf(request, baseUrl) === null)
    throw refuse('not_authorized', {
      detail: 'Origin: only pages of this service change something with the session of a browser.',
    });
  const sent = createHash('sha256')
    .update(String(request.headers['x-csrf-token'] ?? ''))
    .digest();
  const expected = createHash('sha256').update(csrfTokenOf(key)).digest();
  if (!timingSafeEqual(sent, expected))
    throw refuse('not_authorized', {
      detail: 'X-CSRF-Token: is missing or wrong. GET /session has the token of this session.',
    });
}

/** Returns the name of the cookie for the page that signs in, and whether it is for https. Throws the refusal of any other sender. */
export function cookieForPage(
  request: FastifyRequest,
  baseUrl: string,
): { readonly name: string; readonly isSecure: boolean } {
  const page = ownPageOf(request, baseUrl);
  if (page === null)
    throw refuse('not_authorized', { detail: 'Only the pages of this service can sign in a browser.' });
  if (page.protocol === 'https:') return { name: secureName, isSecure: true };
  const name = plainName(request.headers.host);
  if (name !== null) return { name, isSecure: false };
  throw refuse('not_authorized', {
    detail:
      'Sign in over https, or on the machine of the service: others could read a session over plain HTTP. Put a proxy with TLS before the service, and set RUNYARD_BASE_URL to its https address.',
  });
}

const attributes = 'Path=/; HttpOnly; SameSite=Strict';

/** Returns the `Set-Cookie` that keeps the key of a session in the browser. */
export const keepCookie = (
  { name, isSecure }: { readonly name: string; readonly isSecure: boolean },
  key: string,
): string => `${name}=${key}; ${attributes}; Max-Age=${browserSessionHours * 3600}${isSecure ? '; Secure' : ''}`;

/** Returns the `Set-Cookie` headers that remove the session from the browser. */
export function dropCookies(request: FastifyRequest): string[] {
  const name = plainName(request.headers.host);
  return [
    `${secureName}=; ${attributes}; Max-Age=0; Secure`,
    ...(name === null ? [] : [`${name}=; ${attributes}; Max-Age=0`]),
  ];
}
