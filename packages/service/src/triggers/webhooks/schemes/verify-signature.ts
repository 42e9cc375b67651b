import type { IncomingHttpHeaders } from 'node:http';
import type { SchemeHeaders, SignatureScheme } from '@runyard/contract/signature-schemes/scheme';
import { signatureOf } from '@runyard/contract/signature-schemes/signature';
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

/**
 * Returns whether one of the signatures was made with one of the secrets, over the raw body, and is not too old. `nowMs` is the
 * time in milliseconds. Signatures are compared in constant time.
 */
export function verifySignature(
  scheme: SignatureScheme,
  { headers, body }: SignedRequest,
  secrets: readonly string[],
  nowMs: number,
): boolean {
  const used = headersIn(scheme, headers);
  const header = headerOf(headers, used?.signature);
  if (used === undefined || header === undefined) return false;
  const parts = (scheme.separator === undefined ? [header] : header.split(scheme.separator)).map((part) => part.trim());
  const { prefix, timestampPrefix } = scheme;
  const signatures = parts.filter((part) => part.startsWith(prefix)).map((part) => part.slice(prefix.length));
  const timestamp =
    timestampPrefix === undefined
      ? headerOf(headers, used.timestamp)
      : parts.find((part) => part.startsWith(timestampPrefix))?.slice(timestampPrefix.length);
  if (scheme.maxAgeSeconds !== undefined && !isRecent(timestamp, scheme.maxAgeSeconds, nowMs)) return false;
  const id = headerOf(headers, used.id);
  // A dot could move text between the id, the timestamp and the body without a change of the signed bytes.
  if (scheme.signed.includes('{id}') && (id === undefined || id.includes('.'))) return false;
  let isRight = false;
  for (const secret of secrets) {
    const expected = signatureOf(scheme, secret, { id, timestamp, body });
    for (const signature of signatures.slice(0, maxSignatures)) {
      if (isSameSecret(signature, expected)) isRight = true;
    }
  }
  return isRight;
}

/** Future times count too: a sender could otherwise sign requests for later. */
function isRecent(timestamp: string | undefined, maxAgeSeconds: number, nowMs: number): boolean {
  if (timestamp === undefined || !/^\d{1,12}$/.test(timestamp)) return false;
  return Math.abs(nowMs / 1000 - Number(timestamp)) <= maxAgeSeconds;
}
