import { openApiDocument } from '@runyard/contract/openapi';
import { routes } from '@runyard/contract/routes';
import type { FastifyInstance } from 'fastify';
import { readModelChoices } from '../../../team/models/team-models.ts';
import { isTeamOutOfBudget } from '../../../team/usage/budget/team-budget.ts';
import { listConnectedWorkers } from '../../workers/list-connected.ts';
import { addRoute } from '../server/add-route.ts';
import { cachedAnswer } from '../server/cached-answer.ts';
import type { ServiceDeps } from '../server/deps.ts';

/** Registers the list of models, connected workers and the OpenAPI document. */
export function registerServiceInfoRoutes(app: FastifyInstance, deps: ServiceDeps): void {
  addRoute(app, routes.listModels, async ({ principal }) => {
    const choices = await readModelChoices(deps.db, principal.teamId);
    const isOutOfRequests = await isTeamOutOfBudget(deps.db, principal.teamId);
    return deps.models.list({ ...choices, isOutOfRequests });
  });

  addRoute(app, routes.listConnectedWorkers, async ({ principal }) => ({
    workers: await listConnectedWorkers(deps.db, principal.teamId),
  }));

  const sendDocument = cachedAnswer(deps.baseUrl, (baseUrl) => JSON.stringify(openApiDocument(baseUrl)));
  addRoute(app, routes.getOpenApi, async ({ reply }) => {
    reply.type('application/json; charset=utf-8').header('access-control-allow-origin', '*');
    reply.header('access-control-expose-headers', 'X-Ignored-Fields, Preference-Applied');
    return await sendDocument(reply);
  });
}
