import { createHash } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import type { SchemeHeaders, SignatureScheme } from '@runyard/contract/webhooks/signature-schemes/scheme';
import { type SignedParts, signatureOf, signedBytes } from '@runyard/contract/webhooks/signature-schemes/signature';
import { memberAt } from './member-at.ts';
import { isSameSecret } from './same-secret.ts';

/** A rotation needs two. Each further one costs a comparison. */
const maxSignatures = 10;

/** The parts of a delivery that a signature covers. */
export interface SignedRequest {
  readonly headers: IncomingHttpHeaders;
  /** The bytes as they arrived. */
  readonly body: Buffer;
}

const headerOf = (headers: IncomingHttpHeaders, name: string | undefined): string | undefined => {
  const value = name === undefined ? undefined : headers[name];
  return typeof value === 'string' ? value : undefined;
};

/** Returns the headers of the scheme that the sender used; undefined: there is no signature. */
const headersIn = ({ headers: sets }: SignatureScheme, headers: IncomingHttpHeaders): SchemeHeaders | undefined =>
  sets.find(({ signature }) => headerOf(headers, signature) !== undefined);

/** Returns whether there is a signature, right or wrong. */
export const hasSignature = (scheme: SignatureScheme, headers: IncomingHttpHeaders): boolean =>
  headersIn(scheme, headers) !== undefined;

/** Returns the provider's own id of a delivery, from the set of headers whose signature was verified. */
export function providerId(scheme: SignatureScheme, headers: IncomingHttpHeaders): string | undefined {
  const names = headersIn(scheme, headers);
  return headerOf(headers, names?.id) || headerOf(headers, names?.olderId);
}

/** Returns the parts of the signature header. */
const partsOf = ({ separator }: SignatureScheme, header: string): string[] =>
  (separator === undefined ? [header] : header.split(separator)).map((part) => part.trim());

/** Returns the id and the timestamp that a signature covers, as the sender wrote them. */
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

/** Returns the SHA-256 of the bytes that the signature of a request covers, with their lengths, so that no two lists give the same. */
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

/** Returns whether the time in a verified body is recent, where the scheme has it there. */
export function hasRecentMember(
  { timestampMember, maxAgeSeconds }: SignatureScheme,
  value: unknown,
  nowMs: number,
): boolean {
  if (timestampMember === undefined || maxAgeSeconds === undefined) return true;
  const sentMs = memberAt(value, timestampMember);
  return typeof sentMs === 'number' && Math.abs(nowMs - sentMs) <= maxAgeSeconds * 1000;
}

/** Text between the parts could move text from one to the other without a change of the signed bytes. */
const isClearId = ({ signed }: SignatureScheme, id: string | undefined): boolean =>
  id !== undefined && !signed.some((part) => !/^\{\w+\}$/.test(part) && id.includes(part));

/** RFC 3339 in UTC. */
const utc = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z$/;

/** Future times count too: a sender could otherwise sign requests for later. */
function isRecent(timestamp: string | undefined, maxAgeSeconds: number, nowMs: number): boolean {
  if (timestamp === undefined) return false;
  const seconds = utc.test(timestamp)
    ? Date.parse(timestamp) / 1000
    : /^\d{1,12}$/.test(timestamp)
      ? Number(timestamp)
      : Number.NaN;
  return Math.abs(nowMs / 1000 - seconds) <= maxAgeSeconds;
}
