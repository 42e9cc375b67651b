import { routes } from '@runyard/contract/routes';
import type { Domain } from '../../platform/domain.ts';
import type { ServedRoute } from '../../platform/serving/served-route.ts';
import type { CodeHosts } from '../../team/code-hosts/code-hosts.ts';
import type { ExecutionDeps } from '../executions/deps.ts';
import { serveRun } from '../executions/run-tokens/sessions.ts';
import { openPullRequest, refusalOfHost } from './pull-requests/open.ts';
import { deletePushes } from './pushes/record.ts';
import { giveUpUnanswered } from './pushes/unanswered.ts';

interface RepositoryDeps {
  readonly executionDeps: ExecutionDeps;
  readonly codeHosts: CodeHosts;
}

/** The route with which a run opens a pull request. */
const repositoryRoutes = (deps: Parameters<typeof openPullRequest>[0]): readonly ServedRoute[] => [
  serveRun(routes.openPullRequest, async ({ session, body, closed }) => {
    const opened = await openPullRequest(deps, session, body, closed());
    return opened.kind === 'open' ? opened.response : refusalOfHost(opened);
  }),
];

/** Stores the pushes and pull requests of runs. */
export const repositoriesDomain = ({ executionDeps, codeHosts }: RepositoryDeps): Domain => ({
  name: 'repositories',
  routes: () => repositoryRoutes({ ...executionDeps, codeHosts }),
  retention: { deleteRunDetail: deletePushes },
  loops: async () => [
    { name: 'pushes without an answer', everyMs: 600_000, work: () => giveUpUnanswered(executionDeps) },
  ],
});
