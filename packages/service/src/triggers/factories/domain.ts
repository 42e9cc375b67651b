import type { Domain } from '../../platform/domain.ts';
import { searchByName } from '../../platform/search.ts';
import { factoryRoutes } from './routes.ts';

/** Finds the factories of the team. */
export const factorySearch = searchByName({
  kind: 'factory',
  statement: 'search_factories',
  from: 'FROM factories WHERE team_id = $4',
  uid: 'uid',
  name: 'name',
  changedAt: 'updated_at',
  toThing: (found) => ({ ...found, path: `/factories/${found.uid}` }),
});

/** Factories: groups of webhooks and automations, with agents that execute their runs. */
export const factoriesDomain = (deps: Parameters<typeof factoryRoutes>[0]): Domain => ({
  name: 'factories',
  search: [factorySearch],
  routes: () => factoryRoutes(deps),
});
