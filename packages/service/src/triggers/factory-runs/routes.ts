import { routes } from '@runyard/contract/routes';
import { notFound } from '../../platform/serving/refusal.ts';
import type { ServedRoute } from '../../platform/serving/served-route.ts';
import type { SubmitDeps } from '../../runs/runs/submit/prepare.ts';
import { refusedSubmission, sourceOf } from '../../runs/runs/submit/translate.ts';
import { serveRepeatable } from '../../team/access/serve.ts';
import { dispatchFactory } from './dispatch.ts';

interface FactoryRunRouteDeps extends SubmitDeps {
  baseUrl(): string;
}

/** The dispatch of work to foremen. */
export const factoryRunRoutes = (deps: FactoryRunRouteDeps): readonly ServedRoute[] => [
  serveRepeatable(routes.dispatchFactory, async ({ principal, params, body, once, from }) => {
    const outcome = await dispatchFactory(deps, {
      actor: principal,
      factoryUid: params.factoryUid,
      request: body,
      source: sourceOf(from, principal),
      repeatable: once,
    });
    switch (outcome.kind) {
      case 'dispatched':
        return { ...outcome.response, run_url: `${deps.baseUrl()}/runs/${outcome.response.run_id}` };
      case 'no_factory':
        return notFound('factory');
      default:
        return refusedSubmission(outcome);
    }
  }),
];
