/** Routes with which an agent uploads its results, and downloads the attachments of its prompt. */
import { routes } from '@runyard/contract/routes';
import type { FastifyInstance } from 'fastify';
import { invalid, notFound, refuse } from '../../../platform/serving/refusal.ts';
import { isUuid } from '../../../platform/store/database/uuid.ts';
import { uploadArtifact } from '../../../runs/files/artifacts/upload.ts';
import { findAttachment } from '../../../runs/files/attachments/read.ts';
import { findChangesOfRun } from '../../../runs/files/handoffs/read.ts';
import { artifactUploadTarget } from '../../../runs/files/signed-targets.ts';
import { addRoute } from '../server/add-route.ts';
import { refuseSignature } from '../server/authorize.ts';
import { bytesOf, tooManyBytes, uploadBusy, withByteBodies } from '../server/byte-body.ts';
import type { ServiceDeps } from '../server/deps.ts';
import { downloadHeaders, sendBlob, sendContent } from '../server/download.ts';

/** Registers the upload of the bytes of an artifact, and the attachments and stored changes of a run. */
export function registerHarnessArtifactRoutes(app: FastifyInstance, deps: ServiceDeps): void {
  const { db, blobs } = deps;

  addRoute(app, routes.readAttachment, async ({ session, params, reply }) => {
    const attachment = await findAttachment(db, session.runId, params.attachmentId);
    if (!attachment) return notFound('attachment');
    downloadHeaders(reply, attachment.fileName, attachment.mimeType);
    const { content, blobKey, sizeBytes } = attachment;
    const sent = await (content === null
      ? sendBlob(reply, blobs, { key: blobKey, sizeBytes })
      : sendContent(reply, content));
    return sent ? reply : notFound('attachment');
  });

  addRoute(app, routes.readStoredChanges, async ({ session, params, reply }) => {
    const file = await findChangesOfRun(db, session.runId, params.fileId);
    if (!file) return notFound('patch');
    downloadHeaders(reply, file.filename, file.mimeType ?? 'text/x-diff');
    return (await sendBlob(reply, blobs, { key: file.blobKey, sizeBytes: Number(file.sizeBytes) }))
      ? reply
      : notFound('patch');
  });

  withByteBodies(app, (scope) => {
    addRoute(scope, routes.putArtifactContent, async ({ params, query, request, reply }) => {
      const refused = refuseSignature(deps, artifactUploadTarget(params.artifactUid), query);
      if (refused) return refused;
      if (!isUuid(params.artifactUid)) return notFound('artifact');
      const { 'content-length': length, 'content-digest': digest } = request.headers;
      const outcome = await uploadArtifact(deps, params.artifactUid, {
        bytes: bytesOf(request),
        sizeBytes: length === undefined ? undefined : Number(length),
        sha256: sha256Of(digest),
      });
      if (typeof outcome === 'object') return tooManyBytes(reply, outcome.detail);
      switch (outcome) {
        case 'stored':
          return {};
        case 'not_found':
          return notFound('artifact');
        case 'busy':
          return uploadBusy(reply, 'The run has reached its limit of concurrent uploads.');
        case 'other_digest':
          return invalid([
            {
              path: 'content-digest',
              message: 'is not the digest of the bytes that arrived; the file has probably changed during the upload',
            },
          ]);
        case 'other_bytes':
          return refuse('conflict', { detail: 'The artifact has other bytes already; report a new one.' });
      }
    });
  });
}

/** Returns the SHA-256 in a `Content-Digest` (RFC 9530). Other algorithms are ignored. */
function sha256Of(digest: string | string[] | undefined): Buffer | undefined {
  const [, encoded] = /(?:^|[,\s])sha-256=:([A-Za-z0-9+/]{43}=):/.exec(String(digest ?? '')) ?? [];
  return encoded === undefined ? undefined : Buffer.from(encoded, 'base64');
}
