import { apiPrefix } from '@runyard/contract/wire/route';
import type { Signer } from './signer.ts';

/** How long a signed URL is valid, if its target sets no other time. */
const signedUrlSeconds = 15 * 60;

/** One object and the operation on it. `path` is below `/api/v1` and names the object. */
export interface SignedTarget {
  readonly method: 'GET' | 'PUT';
  readonly path: string;
  /** How long a URL for this target is valid. Default: 15 minutes. */
  readonly seconds?: number;
}

export interface SignedUrl {
  readonly url: string;
  /** RFC 3339 */
  readonly expiresAt: string;
}

const secondsOf = ({ seconds = signedUrlSeconds }: SignedTarget): number => seconds;

const signedText = ({ method, path }: SignedTarget, expires: string) => `${method}\n${path}\n${expires}`;

/** Returns a URL that allows one method on one object until it expires. `now` is in milliseconds. */
export function signUrl(signer: Signer, baseUrl: string, target: SignedTarget, now = Date.now()): SignedUrl {
  const expires = Math.ceil(now / 1000) + secondsOf(target);
  const signature = signer.sign('url', signedText(target, String(expires)));
  return {
    url: `${baseUrl}${apiPrefix}${target.path}?expires=${expires}&signature=${signature}`,
    expiresAt: new Date(expires * 1000).toISOString(),
  };
}

/** Maximum difference between the clocks of two service processes, seconds. */
const clockSeconds = 5 * 60;

/** `expired`: the signature is right, but the URL is no longer valid. */
export type SignatureCheck = 'valid' | 'wrong' | 'expired';

/** Checks the query of a signed URL. Compares the signature in constant time. */
export function checkSignedUrl(
  signer: Signer,
  target: SignedTarget,
  query: { expires: string; signature: string },
  now = Date.now(),
): SignatureCheck {
  if (!/^\d{1,12}$/.test(query.expires)) return 'wrong';
  // No process signs a URL that is valid for longer.
  if (Number(query.expires) > now / 1000 + secondsOf(target) + clockSeconds) return 'wrong';
  if (!signer.verify('url', signedText(target, query.expires), query.signature)) return 'wrong';
  return Number(query.expires) * 1000 < now ? 'expired' : 'valid';
}
