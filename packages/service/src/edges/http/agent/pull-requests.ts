import { routes } from '@runyard/contract/routes';
import type { FastifyInstance } from 'fastify';
import { closedSignal } from '../../../platform/bodies/closed-signal.ts';
import { openPullRequest } from '../../../runs/repositories/pull-requests/open.ts';
import { addRoute } from '../server/add-route.ts';
import type { ServiceDeps } from '../server/deps.ts';
import { tooBusy } from '../server/json-bodies.ts';
import { refuse } from '../server/problem.ts';

/** Registers the route with which a run opens pull requests. */
export function registerPullRequestRoutes(app: FastifyInstance, { codeHosts, executionDeps }: ServiceDeps): void {
  addRoute(app, routes.openPullRequest, async ({ session, body, reply }) => {
    const opened = await openPullRequest({ ...executionDeps, codeHosts }, session, body, closedSignal(reply.raw));
    switch (opened.kind) {
      case 'open':
        return opened.response;
      case 'refused':
        return refuse('not_authorized', { detail: opened.message });
      case 'not_found':
        return refuse('resource_not_found', { detail: opened.message });
      case 'conflict':
        return refuse('conflict', { detail: opened.message });
      case 'busy':
        return tooBusy(opened.message);
      case 'unavailable':
        return refuse('resource_unavailable', { status: 503, detail: opened.message });
    }
  });
}
