/** Names the objects to which signed URLs give access. */
import type { SignedTarget } from '../../platform/secrets/signed-urls.ts';

/** Kinds of objects that can be downloaded. `preview`: an artifact that a page shows. */
export type BlobKind = 'artifact' | 'preview' | 'handoff' | 'transcript' | 'conversation-transcript';

/** Returns the target for the download of an object. */
export const blobTarget = (kind: BlobKind, id: string): SignedTarget => ({
  method: 'GET',
  path: `/blobs/${kind}/${id}`,
});

/**
 * Returns the target to which the agent uploads the bytes of an artifact that it reported. The URL is valid for six hours, because an
 * upload of many gigabytes over a slow line may be interrupted and begun again.
 */
export const artifactUploadTarget = (artifactUid: string): SignedTarget => ({
  method: 'PUT',
  path: `/harness-support/uploads/${artifactUid}`,
  seconds: 6 * 3600,
});

/** Returns the target to which a caller uploads a file that it has prepared. */
export const attachmentUploadTarget = (attachmentId: string): SignedTarget => ({
  method: 'PUT',
  path: `/agent/attachments/${attachmentId}`,
});

/** Returns the target to which the agent uploads a file of a snapshot. */
export const snapshotUploadTarget = (fileId: string): SignedTarget => ({
  method: 'PUT',
  path: `/harness-support/snapshot-files/${fileId}`,
});
