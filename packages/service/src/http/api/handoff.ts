/** What a run leaves for whoever goes on with its work elsewhere. */
import { routes } from '@runyard/contract/routes';
import type { FastifyInstance } from 'fastify';
import { beginHandoff } from '../../files/handoffs/begin.ts';
import { putHandoffFile } from '../../files/handoffs/put-file.ts';
import { readLatestHandoff } from '../../files/handoffs/read.ts';
import { isVisibleRun } from '../../runs/read/visible.ts';
import { addRoute } from '../server/add-route.ts';
import { bytesOf, tooManyBytes, uploadBusy, withByteBodies } from '../server/byte-body.ts';
import type { ServiceDeps } from '../server/deps.ts';
import { notFound, refuse } from '../server/problem.ts';
import { type SignedTarget, signUrl } from '../server/signed-urls.ts';
import { blobTarget, refuseSignature } from './blobs.ts';

const uploadTarget = (fileId: string): SignedTarget => ({
  method: 'PUT',
  path: `/harness-support/snapshot-files/${fileId}`,
});

/** Registers the list of a run's handoff, and how its sandbox fills it. */
export function registerHandoffRoutes(app: FastifyInstance, deps: ServiceDeps): void {
  const { db, signing } = deps;

  addRoute(app, routes.listHandoffAttachments, async ({ params, principal }) => {
    if (!(await isVisibleRun(db, principal.teamId, params.runId))) return notFound('run');
    const files = await readLatestHandoff(db, params.runId);
    return {
      attachments: files.map(({ id, filename, mimeType }) => ({
        attachment_id: id,
        filename,
        download_url: signUrl(signing, deps.baseUrl(), blobTarget('handoff', id)).url,
        ...(mimeType === null ? {} : { mime_type: mimeType }),
      })),
    };
  });

  addRoute(app, routes.uploadSnapshot, async ({ session, body }) => {
    const ids = await beginHandoff(deps, session, body);
    const files = ids.map((id, index) => ({
      filename: body.files[index]?.filename ?? '',
      upload_url: signUrl(signing, deps.baseUrl(), uploadTarget(id)).url,
    }));
    return { files };
  });

  withByteBodies(app, (scope) => {
    addRoute(scope, routes.putSnapshotFile, async ({ params, query, request, reply }) => {
      const refused = refuseSignature(deps, uploadTarget(params.fileId), query);
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
