import { routes } from '@runyard/contract/routes';
import type { ServedRoute } from '../../platform/serving/served-route.ts';
import { serveRun } from '../executions/run-tokens/sessions.ts';
import { openPullRequest } from './pull-requests/open.ts';
import { refusalOfHost } from './pull-requests/refusal.ts';

/** The route with which a run opens a pull request. */
export const repositoryRoutes = (deps: Parameters<typeof openPullRequest>[0]): readonly ServedRoute[] => [
  serveRun(routes.openPullRequest, async ({ session, body, closed }) => {
    const opened = await openPullRequest(deps, session, body, closed());
    return opened.kind === 'open' ? opened.response : refusalOfHost(opened);
  }),
];
