import type { Domain } from '../../platform/domain.ts';
import type { CodeHosts } from '../../team/code-hosts/code-hosts.ts';
import type { ExecutionDeps } from '../executions/deps.ts';
import { deletePushes } from './pushes/record.ts';
import { giveUpUnanswered } from './pushes/unanswered.ts';
import { repositoryRoutes } from './routes.ts';

interface RepositoryDeps {
  readonly executionDeps: ExecutionDeps;
  readonly codeHosts: CodeHosts;
}

/** Stores the pushes and pull requests of runs. */
export const repositoriesDomain = ({ executionDeps, codeHosts }: RepositoryDeps): Domain => ({
  name: 'repositories',
  routes: () => repositoryRoutes({ ...executionDeps, codeHosts }),
  retention: { deleteRunDetail: deletePushes },
  loops: async () => [
    { name: 'pushes without an answer', everyMs: 600_000, work: () => giveUpUnanswered(executionDeps) },
  ],
});
