/** The objects that signed URLs open. */

import { type Refusal, refuse } from '../../../platform/serving/refusal.ts';
import type { ServiceDeps } from './deps.ts';
import { checkSignedUrl, type SignedTarget } from './signed-urls.ts';

/** Kinds of objects that can be downloaded. */
export type BlobKind = 'artifact' | 'handoff' | 'transcript' | 'conversation-transcript';

/** Returns the target of an object's download. */
export const blobTarget = (kind: BlobKind, id: string): SignedTarget => ({
  method: 'GET',
  path: `/blobs/${kind}/${id}`,
});

/** Returns the target to which the agent uploads the bytes of an artifact that it reported. */
export const artifactUploadTarget = (artifactUid: string): SignedTarget => ({
  method: 'PUT',
  path: `/harness-support/uploads/${artifactUid}`,
});

/** Returns the target to which the agent uploads a file of a snapshot. */
export const snapshotUploadTarget = (fileId: string): SignedTarget => ({
  method: 'PUT',
  path: `/harness-support/snapshot-files/${fileId}`,
});

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
