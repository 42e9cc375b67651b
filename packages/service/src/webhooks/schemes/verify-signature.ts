import { createHmac, createSecretKey, type KeyObject } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { isSameSecret } from './same-secret.ts';
import type { SchemeHeaders, SignatureScheme } from './scheme.ts';

/** A rotation needs two; each costs a comparison. */
const maxSignatures = 10;

/** The parts of a delivery that a signature covers. */
export interface SignedRequest {
  readonly headers: IncomingHttpHeaders;
  /** The bytes as they came. */
  readonly body: Buffer;
}

const headerOf = (headers: IncomingHttpHeaders, name: string | undefined): string | undefined => {
  const value = name === undefined ? undefined : headers[name];
  return typeof value === 'string' ? value : undefined;
};

/** Returns the headers of the scheme that the sender used; undefined: there is no signature. */
const headersIn = ({ headers: sets }: SignatureScheme, headers: IncomingHttpHeaders): SchemeHeaders | undefined =>
  sets.find(({ signature }) => headerOf(headers, signature) !== undefined);

/** Returns the provider's own id of a delivery, from the set of headers whose signature was verified. */
export function providerId(scheme: SignatureScheme, headers: IncomingHttpHeaders): string | undefined {
  return headerOf(headers, headersIn(scheme, headers)?.id);
}

/** Returns the key of the HMAC. With a key as a buffer, Node needs 30 µs more for each HMAC. */
const keyOf = ({ key }: SignatureScheme, secret: string): KeyObject =>
  key === 'whsec' ? createSecretKey(secret.replace(/^whsec_/, ''), 'base64') : createSecretKey(secret, 'utf8');

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
  const values: Readonly<Record<string, string | Buffer>> = {
    '{id}': id ?? '',
    '{timestamp}': timestamp ?? '',
    '{body}': body,
  };
  let isRight = false;
  for (const secret of secrets) {
    const expected = scheme.algorithm === 'plain' ? secret : digest(scheme, scheme.algorithm, secret, values);
    for (const signature of signatures.slice(0, maxSignatures)) {
      if (isSameSecret(signature, expected)) isRight = true;
    }
  }
  return isRight;
}

function digest(
  scheme: SignatureScheme,
  algorithm: 'sha1' | 'sha256',
  secret: string,
  values: Readonly<Record<string, string | Buffer>>,
): string {
  const hmac = createHmac(algorithm, keyOf(scheme, secret));
  for (const part of scheme.signed) hmac.update(values[part] ?? part);
  return hmac.digest(scheme.encoding);
}

/** Future times count too: a sender could otherwise sign requests for later. */
function isRecent(timestamp: string | undefined, maxAgeSeconds: number, nowMs: number): boolean {
  if (timestamp === undefined || !/^\d{1,12}$/.test(timestamp)) return false;
  return Math.abs(nowMs / 1000 - Number(timestamp)) <= maxAgeSeconds;
}
