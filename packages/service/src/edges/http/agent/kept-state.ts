/**
 * Routes that store the workspace of a sandbox and the memory of the built-in harness. The next sandbox of the same run or conversation
 * reads both.
 */
import { routes } from '@runyard/contract/routes';
import type { FastifyInstance, FastifyReply } from 'fastify';
import { notFound, type Refusal, refuse } from '../../../platform/serving/refusal.ts';
import { isUuid } from '../../../platform/store/database/uuid.ts';
import { oneUpload } from '../../../platform/uploads/lease.ts';
import { holdSandbox } from '../../../runs/executions/lease/agent-lease.ts';
import { admitCheckpoint } from '../../../runs/executions/saved-state.ts';
import { roomOfWorkspace, teamFull } from '../../../runs/files/stored-bytes.ts';
import { keepEmptyWorkspace, keepWorkspace } from '../../../runs/files/workspaces/keep.ts';
import { findWorkspace } from '../../../runs/files/workspaces/of-conversation.ts';
import { findMemory, keepMemory } from '../../../runs/harness-support/memory.ts';
import { addRoute } from '../server/add-route.ts';
import { bytesOf, tooManyBytes, uploadBusy, withByteBodies } from '../server/byte-body.ts';
import type { ServiceDeps } from '../server/deps.ts';
import { sendBytes } from '../server/download.ts';

/** Registers the routes of the workspace, which the service stores between the executions of a run. */
export function registerHarnessWorkspaceRoutes(app: FastifyInstance, deps: ServiceDeps): void {
  const { db, blobs, settings } = deps;

  addRoute(app, routes.readWorkspace, async ({ session, params, reply }) => {
    const { executionId } = params;
    const key = isUuid(executionId) ? await findWorkspace(db, session, executionId) : null;
    return key !== null && (await sendBytes(reply, blobs, key, 'workspace')) ? reply : notFound('workspace');
  });

  withByteBodies(app, (scope) => {
    addRoute(scope, routes.keepWorkspace, async ({ session, query, request, reply }) => {
      const { turn, checkpoint } = query;
      if (checkpoint !== undefined) {
        const leastSeconds = settings.RUNYARD_CHECKPOINT_SECONDS / 2;
        const { executionId } = session;
        if (leastSeconds === 0) return noCheckpoint(reply);
        const admission = await admitCheckpoint(db, { executionId, number: checkpoint, leastSeconds });
        if (admission === 'early') return uploadBusy(reply, 'The last checkpoint was kept a short time ago.');
        if (admission === 'unknown') return noCheckpoint(reply);
      }
      const moment = { turn, checkpoint };
      if (request.headers['content-length'] === '0') {
        await keepEmptyWorkspace(deps, session, moment);
        return {};
      }
      const most = settings.RUNYARD_WORKSPACE_MB * 1024 * 1024;
      const room = await roomOfWorkspace(deps.executionDeps, session.executionId);
      const maxBytes = Math.min(most, room.bytes);
      const kind = { name: `workspace/${session.executionId}`, most: 1 };
      const outcome = await oneUpload(db, kind, bytesOf(request), (body) =>
        holdSandbox(db, session, () =>
          keepWorkspace(deps, session, moment, { body, maxBytes, sessionId: query.session_id }),
        ),
      );
      if (outcome === 'stored') return {};
      if (outcome === 'busy') return uploadBusy(reply, 'The execution uploads a workspace already.');
      if (room.bytes < most) return tooManyBytes(reply, teamFull(deps.executionDeps, room.stored).detail);
      return tooManyBytes(reply, `A workspace has at most ${settings.RUNYARD_WORKSPACE_MB} MB (RUNYARD_WORKSPACE_MB).`);
    });
  });
}

/** Returns a 409 refusal. The body is not read: the connection ends with the answer. */
function noCheckpoint(reply: FastifyReply): Refusal {
  reply.header('connection', 'close');
  return refuse('conflict', {
    detail:
      'checkpoint: the service has no event of this checkpoint, the run does not have on_worker_loss: resume, or RUNYARD_CHECKPOINT_SECONDS is 0. Report the event first, and take no checkpoints otherwise.',
  });
}

/** Registers the routes that read and upload the memory. */
export function registerHarnessMemoryRoutes(app: FastifyInstance, deps: ServiceDeps): void {
  addRoute(app, routes.readMemory, async ({ session, params, reply }) => {
    const key = await findMemory(deps.db, session, params.executionId);
    return key !== null && (await sendBytes(reply, deps.blobs, key, 'memory')) ? reply : notFound('memory');
  });

  withByteBodies(app, (scope) => {
    addRoute(scope, routes.keepMemory, async ({ session, query, request, reply }) => {
      const of = { turn: query.turn, requestId: query.request_id };
      const kind = { name: `memory/${session.executionId}`, most: 1 };
      const outcome = await oneUpload(deps.db, kind, bytesOf(request), (body) => keepMemory(deps, session, of, body));
      if (outcome === 'stored') return {};
      if (outcome === 'busy') return uploadBusy(reply, 'The execution uploads a memory already.');
      return tooManyBytes(reply, outcome === 'too_large' ? 'A memory has at most 32 MB.' : outcome.detail);
    });
  });
}
