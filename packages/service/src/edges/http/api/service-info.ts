import { openApiDocument } from '@runyard/contract/openapi/openapi';
import { routes } from '@runyard/contract/routes';
import type { FastifyInstance } from 'fastify';
import { addRoute } from '../server/add-route.ts';
import { cachedAnswer } from '../server/cached-answer.ts';
import type { ServiceDeps } from '../server/deps.ts';

/** Registers the OpenAPI document. */
export function registerServiceInfoRoutes(app: FastifyInstance, deps: ServiceDeps): void {
  const sendDocument = cachedAnswer(deps.baseUrl, (baseUrl) => JSON.stringify(openApiDocument(baseUrl)));
  addRoute(app, routes.getOpenApi, async ({ reply }) => {
    reply.type('application/json; charset=utf-8').header('access-control-allow-origin', '*');
    reply.header('access-control-expose-headers', 'X-Ignored-Fields, Preference-Applied');
    return await sendDocument(reply);
  });
}
