import { routes } from '@runyard/contract/routes';
import { refuse, tooBusy } from '../../platform/serving/refusal.ts';
import type { ServedRoute } from '../../platform/serving/served-route.ts';
import { serveRun } from '../executions/run-tokens/sessions.ts';
import { openPullRequest } from './pull-requests/open.ts';

/** The route with which a run opens a pull request. */
export const repositoryRoutes = (deps: Parameters<typeof openPullRequest>[0]): readonly ServedRoute[] => [
  serveRun(routes.openPullRequest, async ({ session, body, closed }) => {
    const opened = await openPullRequest(deps, session, body, closed());
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
  }),
];
