import { checkSignedUrl, type SignedTarget } from '../../../platform/secrets/signed-urls.ts';
import { type Refusal, refuse } from '../../../platform/serving/refusal.ts';
import type { ServiceDeps } from './deps.ts';

/** Returns the refusal of a signed URL that does not open `target`; null: it opens it. */
export function refuseSignature(
  deps: Pick<ServiceDeps, 'signing'>,
  target: SignedTarget,
  query: { readonly expires: string; readonly signature: string },
): Refusal | null {
  const check = checkSignedUrl(deps.signing, target, query);
  if (check === 'valid') return null;
  const detail = check === 'expired' ? 'The URL has expired; ask for a new one.' : 'The signature of the URL is wrong.';
  return refuse('not_authorized', { detail });
}
