/** Routes with which a sandbox uploads the snapshot that its run hands off. */
import { routes } from '@runyard/contract/routes';
import type { FastifyInstance } from 'fastify';
import { notFound, refuse } from '../../../platform/serving/refusal.ts';
import { putHandoffFile } from '../../../runs/files/handoffs/put-file.ts';
import { snapshotUploadTarget } from '../../../runs/files/signed-targets.ts';
import { addRoute } from '../server/add-route.ts';
import { bytesOf, tooManyBytes, uploadBusy, withByteBodies } from '../server/byte-body.ts';
import type { ServiceDeps } from '../server/deps.ts';
import { refuseSignature } from '../server/refuse-signature.ts';

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
