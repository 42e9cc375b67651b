import type { Domain } from '../../platform/domain.ts';
import { sealAgain } from '../../platform/secrets/seal-again.ts';
import { sealedApps } from './apps.ts';
import { oldComments } from './comments.ts';
import { appsToPoll, type PollDeps, pollGithub } from './poll.ts';
import { type GithubRouteDeps, githubRoutes } from './routes.ts';
import { sendWords, type WordDeps } from './send-words.ts';
import { dueWords, oldWords } from './words.ts';

/** GitHub Apps of teams: their events, the people behind the accounts, and the comments that continue runs. */
export const githubDomain = (deps: GithubRouteDeps & PollDeps & WordDeps): Domain => ({
  name: 'github',
  routes: () => githubRoutes(deps),
  retention: { rows: [oldWords, oldComments] },
  sealAgain: () => sealAgain(deps.db, deps.vault, sealedApps),
  loops: async () => [
    { name: 'sending comments to runs', everyMs: 1_000, due: [dueWords], work: () => sendWords(deps) },
    { name: 'reading missed events of GitHub', everyMs: 5_000, due: [appsToPoll], work: () => pollGithub(deps) },
  ],
});
