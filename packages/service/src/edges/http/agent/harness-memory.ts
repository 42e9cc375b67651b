/** Routes with which the built-in harness keeps its memory for the next sandbox of its run. */
import { routes } from '@runyard/contract/routes';
import type { FastifyInstance } from 'fastify';
import { notFound } from '../../../platform/serving/refusal.ts';
import { oneUpload } from '../../../platform/uploads/lease.ts';
import { findMemory, keepMemory } from '../../../runs/harness-support/memory.ts';
import { addRoute } from '../server/add-route.ts';
import { bytesOf, tooManyBytes, uploadBusy, withByteBodies } from '../server/byte-body.ts';
import type { ServiceDeps } from '../server/deps.ts';
import { sendBytes } from '../server/download.ts';

/** Registers read and upload of the memory. */
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
