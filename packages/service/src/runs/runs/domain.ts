import type { Domain } from '../../platform/domain.ts';
import type { FailedRows } from '../../platform/store/database/sweep.ts';
import { findDueRetries } from '../executions/retries/retries.ts';
import { checkRoutes } from './check-routes.ts';
import { childRunRoutes } from './child-run-routes.ts';
import { conversationRoutes } from './conversation-routes.ts';
import { createRoutes } from './create-routes.ts';
import { deleteRunDetail } from './delete.ts';
import { forkRoutes } from './fork-routes.ts';
import { indexRunWords, readWaiting, runsPerTurn } from './list/search-index.ts';
import { measureTeams } from './measure.ts';
import { messageRoutes } from './message-routes.ts';
import { readRoutes } from './read-routes.ts';
import { type NoteRetry, retryRuns } from './retries/retry-runs.ts';
import { runRoutes } from './run-routes.ts';
import { runSearch } from './search.ts';

type RunDeps = { readonly noteRetry: NoteRetry } & Parameters<typeof createRoutes>[0] &
  Parameters<typeof runRoutes>[0] &
  Parameters<typeof readRoutes>[0] &
  Parameters<typeof conversationRoutes>[0];

/** The loop that repeats failed runs. */
function repeatingFailedRuns(deps: RunDeps) {
  const failed: FailedRows = new Map();
  return {
    name: 'repeating failed runs',
    everyMs: 1_000,
    due: [findDueRetries],
    work: (signal: AbortSignal) => retryRuns(deps, failed, signal),
  };
}

export const runsDomain = (deps: RunDeps): Domain => ({
  name: 'runs',
  routes: () => [
    ...createRoutes(deps),
    ...readRoutes(deps),
    ...runRoutes(deps),
    ...conversationRoutes(deps),
    ...forkRoutes(deps),
    ...childRunRoutes(deps),
    ...checkRoutes(deps),
    ...messageRoutes(deps),
  ],
  search: [runSearch],
  gauges: [measureTeams(deps.db)],
  retention: { deleteRunDetail },
  loops: async () => [
    {
      name: 'the words of new runs',
      everyMs: 1_000,
      due: [readWaiting],
      work: () => indexRunWords(deps.db, runsPerTurn),
    },
    repeatingFailedRuns(deps),
  ],
});
