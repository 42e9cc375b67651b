/** The cookie of a browser session, and the protection against forged requests from other sites (CSRF). */
import { createHmac, hash, timingSafeEqual } from 'node:crypto';
import { sessionCookie } from '@runyard/contract/team/browser-sessions';
import { isLoopback } from '@runyard/system/address-rules';
import type { FastifyRequest } from 'fastify';

type Request = Pick<FastifyRequest, 'method' | 'headers'>;

/** Browsers resolve names below `localhost` themselves (RFC 6761, 6.3), so a page from another machine cannot have them. */
const isOfThisMachine = (url: URL): boolean => isLoopback(url) || url.hostname.endsWith('.localhost');

/**
 * Returns the name of the cookie over plain HTTP, which is used only on this machine. Returns null if the host is another machine. Browsers
 * share cookies between all ports of a host, so the name contains the port.
 */
function plainName(host: string | undefined): string | null {
  const url = URL.parse(`http://${host ?? ''}`);
  return url !== null && isOfThisMachine(url) ? `runyard-${url.port || '80'}` : null;
}

/** Returns the value of a cookie; undefined: the browser sent none. */
function cookieOf({ headers }: Request, name: string): string | undefined {
  const start = `${name}=`;
  const pair = headers.cookie?.split(';').find((each) => each.trimStart().startsWith(start));
  return pair?.trim().slice(start.length) || undefined;
}

/** Returns the key of the session in the browser's cookie; undefined if there is no cookie. */
export function sessionKeyOf(request: Request): string | undefined {
  const name = plainName(request.headers.host);
  return cookieOf(request, sessionCookie) ?? (name === null ? undefined : cookieOf(request, name));
}

/**
 * Returns the URL of the page that sent the request. Returns null if the request does not come from a page of this service. Browsers send
 * `Origin` with every request but GET and HEAD, and a page cannot set it (Fetch, 3.2).
 */
function ownPageOf({ headers }: Request, baseUrl: string): URL | null {
  const origin = URL.parse(headers.origin ?? '');
  if (origin === null) return null;
  return origin.origin === URL.parse(baseUrl)?.origin || origin.host === headers.host ? origin : null;
}

/**
 * Returns the token by which a page of this service proves that it sent the request with the session's cookie. The token does not reveal
 * the key.
 */
export const csrfTokenOf = (key: string): string => createHmac('sha256', key).update('csrf').digest('base64url');

function isCsrfToken(value: unknown, key: string): boolean {
  const [sent, expected] = [Buffer.from(String(value)), Buffer.from(csrfTokenOf(key))];
  return sent.length === expected.length && timingSafeEqual(sent, expected);
}

/**
 * Returns the reason for a refusal if another page may have sent a request with the session's cookie. Returns null if a page of this
 * service sent it. `SameSite=Strict` already excludes other sites, but other ports of a host and other hosts of its domain belong to the
 * same site.
 */
export function refusalOfForged(request: Request, key: string, baseUrl: string): string | null {
  const { origin, 'sec-fetch-site': site, 'x-csrf-token': token } = request.headers;
  const reads = request.method === 'GET' || request.method === 'HEAD';
  // `none`: the person entered the address. Browsers send the header on https and on loopback addresses.
  if (site !== undefined && site !== 'same-origin' && !(reads && site === 'none'))
    return `Sec-Fetch-Site is ${site}: only pages of this service use the session of a browser.`;
  if (reads) return null;
  // An attacker in the network could change a page without TLS. So a page without TLS cannot use the session of a page with TLS.
  const protocol = cookieOf(request, sessionCookie) === undefined ? 'http:' : 'https:';
  if (ownPageOf(request, baseUrl)?.protocol !== protocol)
    return `Origin is ${origin === undefined ? 'missing' : 'of another page'}: only pages of this service use the session of a browser.`;
  if (isCsrfToken(token, key)) return null;
  return `X-CSRF-Token is ${token === undefined ? 'missing' : 'not the token of this session'}: GET /session has the token.`;
}

/** The cookie for a page. It has `__Host-` and `Secure` with TLS, and neither of them on a loopback address without TLS. */
export interface CookieForPage {
  readonly name: string;
  readonly isSecure: boolean;
}

/** Returns the cookie for the page that signs in, or the reason for its refusal. */
export function cookieForPage(request: Request, baseUrl: string): CookieForPage | string {
  const { host, 'sec-fetch-site': site } = request.headers;
  const page = ownPageOf(request, baseUrl);
  if (page === null || (site !== undefined && site !== 'same-origin'))
    return 'Only the pages of this service can sign in a browser.';
  if (page.protocol === 'https:') return { name: sessionCookie, isSecure: true };
  // The name depends on the header Host of later requests, so a proxy must not have changed it.
  const name = page.host === host ? plainName(host) : null;
  if (name !== null) return { name, isSecure: false };
  return 'Without TLS, others on the network could read the session. Open the service through a tunnel (ssh -L 4180:localhost:4180 HOST, then http://localhost:4180), or put a proxy with TLS before it and set RUNYARD_BASE_URL to its https URL.';
}

/**
 * Returns the cookie for the page that begins a sign-in with an identity provider, or the detail of a refusal. The provider sends the
 * browser back to the base URL. `state` is the parameter of the authorization request: each sign-in has a cookie of its own, so that two
 * tabs of a browser can sign in at the same time.
 */
export function cookieForSignOn(request: Request, baseUrl: string, state: string): CookieForPage | string {
  const cookie = cookieForPage(request, baseUrl);
  if (typeof cookie === 'string') return cookie;
  if (ownPageOf(request, baseUrl)?.origin !== URL.parse(baseUrl)?.origin)
    return `Open this service at ${baseUrl}: identity providers send the browser back there.`;
  return { ...cookie, name: `${cookie.name}${signOnMark}${hash('sha256', state, 'base64url').slice(0, 12)}` };
}

const signOnMark = '-sign-on-';
const maxSignOnCookies = 4;

/** Returns the sign-in cookie that this browser sent; undefined if there is none. */
export const signOnCookieOf = (request: Request, { name }: CookieForPage): string | undefined =>
  cookieOf(request, name);

/** Returns the `Set-Cookie` headers that remove the oldest sign-ins of this browser, if it has many. Browsers send the oldest cookie first. */
export function dropOldSignOns({ headers }: Request, { name, isSecure }: CookieForPage): string[] {
  const [page = ''] = name.split(signOnMark);
  const names = (headers.cookie ?? '').split(';').map((pair) => pair.trim().split('=')[0] ?? '');
  const begun = names.filter((each) => each.startsWith(`${page}${signOnMark}`));
  return begun
    .slice(0, Math.max(0, begun.length + 1 - maxSignOnCookies))
    .map((each) => dropCookie({ name: each, isSecure }));
}

const attributes = 'Path=/; HttpOnly; SameSite=Strict';

/** Returns the `Set-Cookie` that keeps the key of a session in the browser until the session ends. */
export function keepCookie({ name, isSecure }: CookieForPage, key: string, expiresAt: string): string {
  const seconds = Math.max(0, Math.floor((Date.parse(expiresAt) - Date.now()) / 1000));
  return `${name}=${key}; ${attributes}; Max-Age=${seconds}${isSecure ? '; Secure' : ''}`;
}

/** Returns the `Set-Cookie` that removes a cookie of this page. */
export const dropCookie = ({ name, isSecure }: CookieForPage): string =>
  `${name}=; ${attributes}; Max-Age=0${isSecure ? '; Secure' : ''}`;

/** Returns the `Set-Cookie` headers that remove the session from the browser. */
export function dropCookies(request: Request): string[] {
  const name = plainName(request.headers.host);
  return [
    `${sessionCookie}=; ${attributes}; Max-Age=0; Secure`,
    ...(name === null ? [] : [`${name}=; ${attributes}; Max-Age=0`]),
  ];
}
