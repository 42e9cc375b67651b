import { routes } from '@runyard/contract/routes';
import type { FastifyInstance } from 'fastify';
import { notFound } from '../../../platform/serving/refusal.ts';
import { readLatestHandoff } from '../../../runs/files/handoffs/read.ts';
import { isVisibleRun } from '../../../runs/runs/read/visible.ts';
import { addRoute } from '../server/add-route.ts';
import type { ServiceDeps } from '../server/deps.ts';
import { blobTarget } from '../server/signed-targets.ts';
import { signUrl } from '../server/signed-urls.ts';

/** Registers the list of the files that a run hands off. */
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
}
