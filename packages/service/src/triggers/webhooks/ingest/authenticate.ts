/** Checks that a request comes from the sender of its webhook: token, signature, and the signed time and event. */
import { createHash, hash, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import type { SchemeHeaders, SignatureScheme } from '@runyard/contract/webhooks/signature-schemes/scheme';
import { type SignedParts, signatureOf, signedBytes } from '@runyard/contract/webhooks/signature-schemes/signature';
import type { KnownWebhook } from './directory.ts';

/**
 * Returns the member of a value that a path with dots names; a number in the path is an index in a list. Returns undefined if there is no
 * such member.
 */
export function memberAt(value: unknown, path: string): unknown {
  let found = value;
  for (const name of path.split('.')) {
    if (typeof found !== 'object' || found === null || !Object.hasOwn(found, name)) return undefined;
    found = Reflect.get(found, name);
  }
  return found;
}

/** Returns a member that is text or a number, as text; undefined if it is neither. */
export function memberText(value: unknown, path: string): string | undefined {
  const found = memberAt(value, path);
  if (typeof found === 'string') return found;
  // A larger number has lost digits, so two different numbers could become equal.
  return Number.isSafeInteger(found) ? String(found) : undefined;
}

const hashOf = (text: string): Buffer => hash('sha256', text, 'buffer');

/** Compares two texts in a time that reveals neither the place of a difference nor the length of the second. */
const isSameSecret = (given: string, right: string): boolean => timingSafeEqual(hashOf(given), hashOf(right));

/** Largest number of signatures that are compared. A rotation needs two signatures, and each further signature costs a comparison. */
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

/** Returns the headers of the scheme that the sender used; undefined if there is no signature. */
const headersIn = ({ headers: sets }: SignatureScheme, headers: IncomingHttpHeaders): SchemeHeaders | undefined =>
  sets.find(({ signature }) => headerOf(headers, signature) !== undefined);

/** Returns whether there is a signature, right or wrong. */
const hasSignature = (scheme: SignatureScheme, headers: IncomingHttpHeaders): boolean =>
  headersIn(scheme, headers) !== undefined;

/** Returns the provider's own id of a delivery, from the set of headers whose signature was verified. */
export function providerId(scheme: SignatureScheme, headers: IncomingHttpHeaders): string | undefined {
  const names = headersIn(scheme, headers);
  return headerOf(headers, names?.id) || headerOf(headers, names?.olderId);
}

/** Returns the parts of the signature header. */
const partsOf = ({ separator }: SignatureScheme, header: string): string[] =>
  (separator === undefined ? [header] : header.split(separator)).map((part) => part.trim());

/** Returns the signed id and timestamp, as the sender wrote them. */
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
 * Returns the SHA-256 of the byte strings that the signature of a request covers, and of their lengths, so that two different lists never
 * have the same hash.
 */
export function hashOfSigned(scheme: SignatureScheme, request: SignedRequest): Buffer {
  const hash = createHash('sha256');
  for (const part of signedBytes(scheme, signedParts(scheme, request)))
    hash.update(`${Buffer.byteLength(part)} `).update(part);
  return hash.digest();
}

/**
 * Returns whether one of the signatures was made with one of the secrets, over the raw body, and is not too old. `nowMs` is the
 * time in milliseconds. Signatures are compared in constant time.
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

/** Returns whether the time in a verified body is recent, if the scheme has a time in the body. */
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
 * Returns false if the id contains a text that separates the signed parts, such as a dot. With such an id, text could move from one
 * part to another without a change of the signed bytes.
 */
const isClearId = ({ signed }: SignatureScheme, id: string | undefined): boolean =>
  id !== undefined && !signed.some((part) => !/^\{\w+\}$/.test(part) && id.includes(part));

/** RFC 3339 in UTC. */
const utc = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z$/;

/** Refuses times that are too far in the future too, because a sender could otherwise sign requests for later. */
function isRecent(timestamp: string | undefined, maxAgeSeconds: number, nowMs: number): boolean {
  if (timestamp === undefined) return false;
  const seconds = utc.test(timestamp)
    ? Date.parse(timestamp) / 1000
    : /^\d{1,12}$/.test(timestamp)
      ? Number(timestamp)
      : Number.NaN;
  return Math.abs(nowMs / 1000 - seconds) <= maxAgeSeconds;
}

/** Returns the name of the event in a signed body, in the spelling of the header; undefined if the body names no event. */
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
 * Returns why the event in the header cannot be right: the body, which is signed, is of another event. Undefined: header and body agree, or
 * the body does not show its event. Without this check, a recorded delivery could be replayed as another event. `header`: the header that
 * the webhook names instead of the header of the scheme. The event names in this header may differ from those in `eventMember`.
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
  return `the header ${header} names the event ${event}, but the signed body is of another one`;
}

/** Credentials of a sender outside of the body. */
export interface Credentials {
  readonly headers: IncomingHttpHeaders;
  /** Segment of the path after the UID; undefined: there is no such segment. */
  readonly urlToken: string | undefined;
}

/** RFC 6750, 2.1: the name of the scheme is case-insensitive. */
const bearer = /^bearer +([\x21-\x7e]{1,1000}) *$/i;
/** RFC 7617, 2. */
const basic = /^basic +([A-Za-z0-9+/]{1,4000}={0,2}) *$/i;

/** Returns the token of a header Authorization. With Basic it is the password, because many senders support no other form. */
function tokenOf(authorization = ''): string {
  const password = basic.exec(authorization)?.[1];
  if (password === undefined) return bearer.exec(authorization)?.[1] ?? '';
  return Buffer.from(password, 'base64')
    .toString('utf8')
    .replace(/^[^:]*:?/, '');
}

const isOneOf = (given: string, secrets: readonly string[]): boolean =>
  // Compares with all secrets, so that the duration reveals nothing.
  secrets.map((secret) => isSameSecret(given, secret)).includes(true);

/** Returns whether the sender sent the right token; undefined if the webhook has no token, and the body decides. */
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

/** Returns whether the request has a signature of the scheme, right or wrong. */
export const isSigned = ({ sender }: KnownWebhook, { headers, urlToken }: Credentials): boolean =>
  sender !== null && urlToken === undefined && hasSignature(sender, headers);

/** Returns true if the request comes from the sender for which the webhook was created. */
export function authenticate(webhook: KnownWebhook, credentials: Credentials, body: Buffer, nowMs: number): boolean {
  const hasToken = checkToken(webhook, credentials);
  if (hasToken !== undefined) return hasToken;
  if (webhook.sender === null || credentials.urlToken !== undefined) return false;
  return verifySignature(webhook.sender, { headers: credentials.headers, body }, webhook.secrets(), nowMs);
}
