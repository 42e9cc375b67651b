import type { Domain } from '../../platform/domain.ts';
import { childRunRoutes } from './child-run-routes.ts';
import { conversationRoutes } from './conversation-routes.ts';
import { createRoutes } from './create-routes.ts';
import { deleteRunDetail } from './delete.ts';
import { indexRunWords, readWaiting, runsPerTurn } from './list/search-index.ts';
import { measureTeams } from './measure.ts';
import { messageRoutes } from './message-routes.ts';
import { readRoutes } from './read-routes.ts';
import { runRoutes } from './run-routes.ts';
import { runSearch } from './search.ts';

type RunDeps = Parameters<typeof createRoutes>[0] &
  Parameters<typeof runRoutes>[0] &
  Parameters<typeof readRoutes>[0] &
  Parameters<typeof conversationRoutes>[0];

export const runsDomain = (deps: RunDeps): Domain => ({
  name: 'runs',
  routes: () => [
    ...createRoutes(deps),
    ...readRoutes(deps),
    ...runRoutes(deps),
    ...conversationRoutes(deps),
    ...childRunRoutes(deps),
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
  ],
});
