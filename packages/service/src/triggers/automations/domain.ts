import type { Domain } from '../../platform/domain.ts';
import { searchByName } from '../../platform/search.ts';
import { boolean, text } from '../../platform/store/database/statement.ts';
import type { FindWaiting } from '../../team/access/contents/waiting-after-change.ts';
import { automationRoutes } from './routes.ts';

/** Finds the automations of all factories of the team. */
export const automationSearch = searchByName({
  kind: 'automation',
  statement: 'search_automations',
  from: 'FROM automations WHERE team_id = $4',
  uid: 'uid',
  name: 'name',
  changedAt: 'updated_at',
  more: { enabled: boolean, factory_uid: text() },
  toThing: (found) => ({ ...found, path: `/factories/${found.factory_uid}/automations/${found.uid}` }),
});

/** Automations: prompts that become runs when a webhook delivery arrives or at the times of a schedule. The domain `starts` starts these runs. */
export const automationsDomain = (deps: Parameters<typeof automationRoutes>[0], findWaiting: FindWaiting): Domain => ({
  name: 'automations',
  search: [automationSearch],
  routes: () => automationRoutes(deps, findWaiting),
});
