/** Routes with which an agent uploads its results, and downloads the attachments of its prompt. */
import { routes } from '@runyard/contract/routes';
import type { FastifyInstance } from 'fastify';
import { notFound, refuse } from '../../../platform/serving/refusal.ts';
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
  const { db, blobs, settings } = deps;
  const maxBytes = settings.RUNYARD_ARTIFACT_MB * 1024 * 1024;
  const tooLarge = `An artifact has at most ${settings.RUNYARD_ARTIFACT_MB} MB. Divide the file, or raise RUNYARD_ARTIFACT_MB.`;

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
      if (Number(request.headers['content-length'] ?? 0) > maxBytes) return tooManyBytes(reply, tooLarge);
      const maxBytesOfRun = settings.RUNYARD_RUN_ARTIFACTS_MB * 1024 * 1024;
      const outcome = await uploadArtifact({ ...deps, maxBytes, maxBytesOfRun }, params.artifactUid, bytesOf(request));
      if (typeof outcome === 'object') return tooManyBytes(reply, outcome.detail);
      switch (outcome) {
        case 'stored':
          return {};
        case 'not_found':
          return notFound('artifact');
        case 'run_full': {
          const most = `The artifacts of a run have at most ${settings.RUNYARD_RUN_ARTIFACTS_MB} MB together.`;
          return tooManyBytes(reply, `${most} Delete some, or raise RUNYARD_RUN_ARTIFACTS_MB.`);
        }
        case 'busy':
          return uploadBusy(reply, 'The run has reached its limit of concurrent uploads.');
        case 'too_large':
          return tooManyBytes(reply, tooLarge);
        case 'other_bytes':
          return refuse('conflict', { detail: 'The artifact has other bytes already; report a new one.' });
      }
    });
  });
}
