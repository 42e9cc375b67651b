/** Checks that a request comes from the sender of its webhook: checks the token or the signature, and the signed time and event. */
import { createHash, hash, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import type { SchemeHeaders, SignatureScheme } from '@runyard/contract/webhooks/signature-schemes/scheme';
import { type SignedParts, signatureOf, signedBytes } from '@runyard/contract/webhooks/signature-schemes/signature';
import type { KnownWebhook } from './directory.ts';

/**
 * Returns the member of a value at a path with dots, such as `data.items.0`. A number in the path is an index in a list. Returns
 * undefined if there is no such member.
 */
export function memberAt(value: unknown, path: string): unknown {
  let found = value;
  for (const name of path.split('.')) {
    if (typeof found !== 'object' || found === null || !Object.hasOwn(found, name)) return undefined;
    found = Reflect.get(found, name);
  }
  return found;
}

/** Returns the member at a path as text, if it is text or a number; otherwise undefined. */
export function memberText(value: unknown, path: string): string | undefined {
  const found = memberAt(value, path);
  if (typeof found === 'string') return found;
  // Numbers that are not safe integers may have lost digits, so two different ids could become equal.
  return Number.isSafeInteger(found) ? String(found) : undefined;
}

const hashOf = (text: string): Buffer => hash('sha256', text, 'buffer');

/** Compares two texts in constant time: the duration reveals neither where the texts differ nor the length of the right text. */
const isSameSecret = (given: string, right: string): boolean => timingSafeEqual(hashOf(given), hashOf(right));

/**
 * Largest number of signatures that are compared. While a secret is replaced, a sender sends two signatures. A hostile request could
 * have many, and each costs a comparison.
 */
const maxSignatures = 10;

/** The parts of a delivery that a signature covers. */
interface SignedRequest {
  readonly headers: IncomingHttpHeaders;
  /** The bytes as they arrived. */
  readonly body: Buffer;
}

const headerOf = (headers: IncomingHttpHeaders, name: string | undefined): string | undefined => {
  const value = name === undefined ? undefined : headers[name];
  return typeof value === 'string' ? value : undefined;
};

/** Returns which of the scheme's sets of header names the sender has used; undefined if there is no signature. */
const headersIn = ({ headers: sets }: SignatureScheme, headers: IncomingHttpHeaders): SchemeHeaders | undefined =>
  sets.find(({ signature }) => headerOf(headers, signature) !== undefined);

/** Returns whether the request has a signature. Does not check it. */
const hasSignature = (scheme: SignatureScheme, headers: IncomingHttpHeaders): boolean =>
  headersIn(scheme, headers) !== undefined;

/** Returns the id that the provider gave a delivery. Reads it from the same set of headers as the signature. */
export function providerId(scheme: SignatureScheme, headers: IncomingHttpHeaders): string | undefined {
  const names = headersIn(scheme, headers);
  return headerOf(headers, names?.id) || headerOf(headers, names?.olderId);
}

/** Returns the parts of the signature header, which may contain several signatures. */
const partsOf = ({ separator }: SignatureScheme, header: string): string[] =>
  (separator === undefined ? [header] : header.split(separator)).map((part) => part.trim());

/** Returns the id and the timestamp that the signature covers, unchanged, and the body. */
function signedParts(scheme: SignatureScheme, { headers, body }: SignedRequest): SignedParts {
  const used = headersIn(scheme, headers);
  const { timestampPrefix: before } = scheme;
  const timestamp =
    before === undefined
      ? headerOf(headers, used?.timestamp)
      : partsOf(scheme, headerOf(headers, used?.signature) ?? '')
          .find((part) => part.startsWith(before))
          ?.slice(before.length);
  return { id: headerOf(headers, used?.id), timestamp, body };
}

/**
 * Returns the SHA-256 of all byte strings that the signature of a request covers. The hash includes their lengths, so that two
 * different lists of strings never have the same hash.
 */
export function hashOfSigned(scheme: SignatureScheme, request: SignedRequest): Buffer {
  const hash = createHash('sha256');
  for (const part of signedBytes(scheme, signedParts(scheme, request)))
    hash.update(`${Buffer.byteLength(part)} `).update(part);
  return hash.digest();
}

/**
 * Returns whether one of the request's signatures was made with one of the secrets over the raw body, and is not too old. `nowMs`: the
 * present time in milliseconds. Compares signatures in constant time.
 */
export function verifySignature(
  scheme: SignatureScheme,
  request: SignedRequest,
  secrets: readonly string[],
  nowMs: number,
): boolean {
  const header = headerOf(request.headers, headersIn(scheme, request.headers)?.signature);
  if (header === undefined) return false;
  const { prefix, maxAgeSeconds } = scheme;
  const parts = partsOf(scheme, header).filter((part) => part.startsWith(prefix));
  const signatures = parts.map((part) => part.slice(prefix.length));
  const signed = signedParts(scheme, request);
  if (
    scheme.timestampMember === undefined &&
    maxAgeSeconds !== undefined &&
    !isRecent(signed.timestamp, maxAgeSeconds, nowMs)
  )
    return false;
  if (scheme.signed.includes('{id}') && !isClearId(scheme, signed.id)) return false;
  let isRight = false;
  for (const secret of secrets) {
    const expected = signatureOf(scheme, secret, signed);
    for (const signature of signatures.slice(0, maxSignatures)) {
      if (isSameSecret(signature, expected)) isRight = true;
    }
  }
  return isRight;
}

/** Returns whether the time in a verified body is recent. Returns true if the scheme has no time in the body. */
export function hasRecentMember(
  { timestampMember, maxAgeSeconds }: SignatureScheme,
  value: unknown,
  nowMs: number,
): boolean {
  if (timestampMember === undefined || maxAgeSeconds === undefined) return true;
  const sentMs = memberAt(value, timestampMember);
  return typeof sentMs === 'number' && Math.abs(nowMs - sentMs) <= maxAgeSeconds * 1000;
}

/**
 * Returns false if the id contains a text that separates the signed parts, such as a dot. With such an id, an attacker could move text
 * from one part to another, and the signed bytes would stay the same.
 */
const isClearId = ({ signed }: SignatureScheme, id: string | undefined): boolean =>
  id !== undefined && !signed.some((part) => !/^\{\w+\}$/.test(part) && id.includes(part));

/** RFC 3339 in UTC. */
const utc = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z$/;

/**
 * Returns whether a time is near the present. Times that are too far in the future are refused too, because otherwise a sender could
 * sign requests now and send them much later.
 */
function isRecent(timestamp: string | undefined, maxAgeSeconds: number, nowMs: number): boolean {
  if (timestamp === undefined) return false;
  const seconds = utc.test(timestamp)
    ? Date.parse(timestamp) / 1000
    : /^\d{1,12}$/.test(timestamp)
      ? Number(timestamp)
      : Number.NaN;
  return Math.abs(nowMs / 1000 - seconds) <= maxAgeSeconds;
}

/** Returns the name of the event that a signed body shows, in the form in which the header has it; undefined if the body shows no event. */
function eventInBody({ eventMember, eventMembers = {} }: SignatureScheme, body: unknown): string | undefined {
  if (eventMember !== undefined) {
    const name = memberAt(body, eventMember);
    return typeof name === 'string' ? name : undefined;
  }
  return Object.entries(eventMembers).find(([, members]) =>
    members.every((path) => memberAt(body, path) !== undefined),
  )?.[0];
}

/**
 * Returns why the event in the header must be wrong: the signed body shows another event. Returns undefined if the header and the body
 * agree, or if the body does not show an event. Without this check, an attacker could send a recorded delivery again as another event,
 * because the signature does not cover the header. `header`: the header with the event, if the settings of the webhook name another
 * header than the scheme. The names in such a header may differ from those in the body, so they are not compared with `eventMember`.
 */
export function faultOfEvent(
  sender: SignatureScheme,
  event: string,
  body: unknown,
  header = sender.eventHeader,
): string | undefined {
  const isKnown =
    sender.eventMember === undefined ? Object.hasOwn(sender.eventMembers ?? {}, event) : header === sender.eventHeader;
  const signedEvent = isKnown ? eventInBody(sender, body) : undefined;
  if (signedEvent === undefined || signedEvent === event) return undefined;
  return `the header ${header} names the event ${event}, but the signed body is of another event`;
}

/** The parts of a request, except the body, that show who the sender is. */
export interface Credentials {
  readonly headers: IncomingHttpHeaders;
  /** The part of the URL's path after the UID; undefined: there is no such part. */
  readonly urlToken: string | undefined;
}

/** A header with a bearer token (RFC 6750, 2.1). The name of the scheme is case-insensitive. */
const bearer = /^bearer +([\x21-\x7e]{1,1000}) *$/i;
/** A header with a user name and a password (RFC 7617, 2). */
const basic = /^basic +([A-Za-z0-9+/]{1,4000}={0,2}) *$/i;

/** Returns the token in an Authorization header. With the scheme Basic, the password is the token, because many senders support no other scheme. */
function tokenOf(authorization = ''): string {
  const password = basic.exec(authorization)?.[1];
  if (password === undefined) return bearer.exec(authorization)?.[1] ?? '';
  return Buffer.from(password, 'base64')
    .toString('utf8')
    .replace(/^[^:]*:?/, '');
}

const isOneOf = (given: string, secrets: readonly string[]): boolean =>
  // Compare with all secrets even after a match, so that the duration reveals nothing.
  secrets.map((secret) => isSameSecret(given, secret)).includes(true);

/** Returns whether the sender sent the right token. Returns undefined if the webhook uses signatures, which can be checked only with the body. */
export function checkToken(webhook: KnownWebhook, { headers, urlToken }: Credentials): boolean | undefined {
  switch (webhook.authMode) {
    case 'token': {
      return isOneOf(tokenOf(headers.authorization), webhook.secrets()) && urlToken === undefined;
    }
    case 'url_token':
      return isOneOf(urlToken ?? '', webhook.secrets());
    case 'signature':
      return undefined;
  }
}

/** Returns whether the request has a signature of the webhook's scheme. Does not check it. */
export const isSigned = ({ sender }: KnownWebhook, { headers, urlToken }: Credentials): boolean =>
  sender !== null && urlToken === undefined && hasSignature(sender, headers);

/** Returns whether the token or the signature of the request is right. */
export function authenticate(webhook: KnownWebhook, credentials: Credentials, body: Buffer, nowMs: number): boolean {
  const hasToken = checkToken(webhook, credentials);
  if (hasToken !== undefined) return hasToken;
  if (webhook.sender === null || credentials.urlToken !== undefined) return false;
  return verifySignature(webhook.sender, { headers: credentials.headers, body }, webhook.secrets(), nowMs);
}
