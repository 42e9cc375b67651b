import { openApiDocument } from '@runyard/contract/openapi';
import { routes } from '@runyard/contract/routes';
import type { FastifyInstance } from 'fastify';
import { listConnectedWorkers } from '../../workers/connected.ts';
import { addRoute } from '../server/add-route.ts';
import type { ServiceDeps } from '../server/deps.ts';

/** Registers models, connected workers and the OpenAPI document. */
export function registerServiceInfoRoutes(app: FastifyInstance, deps: ServiceDeps): void {
  addRoute(app, routes.listModels, async () => deps.models.list());

  addRoute(app, routes.listConnectedWorkers, async ({ principal }) => ({
    workers: await listConnectedWorkers(deps.db, principal.teamId),
  }));

  addRoute(app, routes.getOpenApi, async ({ reply }) => {
    reply.header('access-control-allow-origin', '*');
    return openApiDocument(deps.baseUrl());
  });
}
