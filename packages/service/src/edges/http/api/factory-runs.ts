import { routes } from '@runyard/contract/routes';
import type { FastifyInstance } from 'fastify';
import { notFound } from '../../../platform/serving/refusal.ts';
import { dispatchFactory } from '../../../triggers/factory-runs/dispatch.ts';
import { addRoute } from '../server/add-route.ts';
import type { ServiceDeps } from '../server/deps.ts';
import { refusedSubmission } from '../server/refused-submission.ts';
import { sourceOf } from './run-source.ts';

/** Registers the dispatch of work to foremen. */
export function registerFactoryRunRoutes(app: FastifyInstance, deps: ServiceDeps): void {
  addRoute(app, routes.dispatchFactory, async ({ principal, params, body, once, request }) => {
    const { factoryUid } = params;
    const outcome = await dispatchFactory(deps, {
      actor: principal,
      factoryUid,
      request: body,
      source: sourceOf(request),
      once,
    });
    switch (outcome.kind) {
      case 'submitted': {
        const { run_id, state } = outcome.response;
        return { run_id, run_url: `${deps.baseUrl()}/runs/${run_id}`, state };
      }
      case 'no_factory':
        return notFound('factory');
      default:
        return refusedSubmission(outcome);
    }
  });
}
