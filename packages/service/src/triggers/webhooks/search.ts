import { searchByName } from '../../platform/search.ts';
import { boolean, text } from '../../platform/store/database/statement.ts';

/** Finds the webhooks of all factories of the team. */
export const webhookSearch = searchByName({
  kind: 'webhook',
  statement: 'search_webhooks',
  from: 'FROM webhooks WHERE team_id = $4',
  uid: 'uid',
  name: 'name',
  changedAt: 'updated_at',
  more: { enabled: boolean, factory_uid: text() },
  toThing: (found) => ({ ...found, path: `/factories/${found.factory_uid}/webhooks/${found.uid}` }),
});
