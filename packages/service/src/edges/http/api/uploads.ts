/** Uploads by signed URLs: files that a follow-up will name, and the files of a snapshot that a run hands off. */
import { maxAttachmentBytes } from '@runyard/contract/limits';
import { routes } from '@runyard/contract/routes';
import type { FastifyInstance } from 'fastify';
import { notFound, refuse } from '../../../platform/serving/refusal.ts';
import { uploadAttachment } from '../../../runs/files/attachments/upload.ts';
import { putHandoffFile } from '../../../runs/files/handoffs/put-file.ts';
import { attachmentUploadTarget, snapshotUploadTarget } from '../../../runs/files/signed-targets.ts';
import { addRoute } from '../server/add-route.ts';
import { refuseSignature } from '../server/authorize.ts';
import { bytesOf, tooManyBytes, uploadBusy, withByteBodies } from '../server/byte-body.ts';
import type { ServiceDeps } from '../server/deps.ts';

const tooLarge = `An attachment has at most ${maxAttachmentBytes / 1024 / 1024} MB.`;

/** Registers the upload of the bytes of a prepared file. */
export function registerAttachmentRoutes(app: FastifyInstance, deps: ServiceDeps): void {
  withByteBodies(app, (scope) => {
    addRoute(scope, routes.putAttachment, async ({ params, query, request, reply }) => {
      const refused = refuseSignature(deps, attachmentUploadTarget(params.attachmentId), query);
      if (refused) return refused;
      if (Number(request.headers['content-length'] ?? 0) > maxAttachmentBytes) return tooManyBytes(reply, tooLarge);
      const outcome = await uploadAttachment(deps, params.attachmentId, bytesOf(request));
      if (typeof outcome === 'object') return tooManyBytes(reply, outcome.detail);
      switch (outcome) {
        case 'stored':
          return {};
        case 'not_found':
          return notFound('file');
        case 'busy':
          return uploadBusy(reply, 'The run has reached its limit of concurrent uploads.');
        case 'too_large':
          return tooManyBytes(reply, tooLarge);
        case 'other_bytes':
          return refuse('conflict', { detail: 'The file has other bytes already; prepare a new one.' });
      }
    });
  });
}

/** Registers the upload of the files of a snapshot. */
export function registerHarnessSnapshotRoutes(app: FastifyInstance, deps: ServiceDeps): void {
  withByteBodies(app, (scope) => {
    addRoute(scope, routes.putSnapshotFile, async ({ params, query, request, reply }) => {
      const refused = refuseSignature(deps, snapshotUploadTarget(params.fileId), query);
      if (refused) return refused;
      switch (await putHandoffFile(deps, params.fileId, bytesOf(request))) {
        case 'stored':
          return {};
        case 'not_found':
          return notFound('file');
        case 'busy':
          return uploadBusy(reply, 'The execution uploads other files.');
        case 'too_short':
          return refuse('invalid_request', { detail: 'The body has fewer bytes than were announced.' });
        case 'too_large':
          return tooManyBytes(reply, 'The body has more bytes than were announced.');
        case 'other_bytes':
          return refuse('conflict', { detail: 'The file has other bytes already; begin a new snapshot.' });
      }
    });
  });
}
