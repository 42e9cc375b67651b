/** How a sandbox hands its workspace to the next one of its run. */
import { routes } from '@runyard/contract/routes';
import type { FastifyInstance } from 'fastify';
import { holdSandbox } from '../../executions/lease/hold-for-upload.ts';
import { keepEmptyWorkspace, keepWorkspace } from '../../files/workspaces/keep.ts';
import { findWorkspace } from '../../files/workspaces/read.ts';
import { oneUpload } from '../../uploads/lease.ts';
import { addRoute } from '../server/add-route.ts';
import { bytesOf, tooManyBytes, uploadBusy, withByteBodies } from '../server/byte-body.ts';
import type { ServiceDeps } from '../server/deps.ts';
import { sendBytes } from '../server/download.ts';
import { notFound } from '../server/problem.ts';

/** Registers the workspace that is kept between the executions of a run. */
export function registerHarnessWorkspaceRoutes(app: FastifyInstance, deps: ServiceDeps): void {
  const { db, blobs, settings } = deps;

  addRoute(app, routes.readWorkspace, async ({ session, params, reply }) => {
    const key = await findWorkspace(db, session.runId, params.executionId);
    return key !== null && (await sendBytes(reply, blobs, key, 'workspace')) ? reply : notFound('workspace');
  });

  withByteBodies(app, (scope) => {
    addRoute(scope, routes.keepWorkspace, async ({ session, query, request, reply }) => {
      if (request.headers['content-length'] === '0') {
        await keepEmptyWorkspace(deps, session, query.turn);
        return {};
      }
      const maxBytes = settings.RUNYARD_WORKSPACE_MB * 1024 * 1024;
      const kind = { name: `workspace/${session.executionId}`, most: 1 };
      const outcome = await oneUpload(db, kind, bytesOf(request), (body) =>
        holdSandbox(db, session, () =>
          keepWorkspace(deps, session, query.turn, { body, maxBytes, sessionId: query.session_id }),
        ),
      );
      if (outcome === 'stored') return {};
      if (outcome === 'busy') return uploadBusy(reply, 'The execution uploads a workspace already.');
      return tooManyBytes(reply, `A workspace has at most ${settings.RUNYARD_WORKSPACE_MB} MB (RUNYARD_WORKSPACE_MB).`);
    });
  });
}
