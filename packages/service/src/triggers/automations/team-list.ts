/** Lists the automations of all factories of a team, with the numbers of runs that they have started. */
import type {
  ListTeamAutomationsResponse,
  ListTeamThingsQuery,
  TeamAutomation,
} from '@runyard/contract/automations/team-lists';
import { type CursorSigner, positionOfName, readPage } from '../../platform/store/cursor.ts';
import type { Queryable } from '../../platform/store/database/database.ts';
import { defineStatement } from '../../platform/store/database/statement.ts';
import { readFactoryNames } from '../factories/factories.ts';
import { readStartNumbers } from '../history/numbers.ts';
import { automationRow } from './automation-row.ts';
import { toItems } from './items.ts';

/** SQL of the columns of an automation except the large columns, which the list does not show. */
const columns = Object.keys(automationRow)
  .map((name) => (name === 'prompt' ? `'' AS prompt` : name === 'config' ? 'NULL::jsonb AS config' : name))
  .join(', ');

const readAutomations = defineStatement({
  name: 'read_automations_of_team',
  text: `
    SELECT ${columns} FROM automations
    WHERE team_id = $1 AND ($2::text IS NULL OR factory_uid = $2) AND (name COLLATE "C", uid) > ($3 COLLATE "C", $4)
    ORDER BY name COLLATE "C", uid LIMIT $5`,
  row: automationRow,
});

/** Returns one page of automations, sorted by name. Returns null if the cursor was made for another list. */
export async function listTeamAutomations(
  db: Queryable,
  signer: CursorSigner,
  teamId: string,
  query: ListTeamThingsQuery,
): Promise<ListTeamAutomationsResponse | null> {
  const { factory_uid: factoryUid = null } = query;
  const found = await readPage(signer, query, {
    list: ['automations of team', teamId, factoryUid],
    read: (after, count) => db.query(readAutomations, [teamId, factoryUid, after?.value ?? '', after?.id ?? '', count]),
    positionOf: positionOfName,
  });
  if (!found) return null;
  const { page, page_info } = found;
  const factoryUids = [...new Set(page.map(({ factory_uid: uid }) => uid))];
  const [items, names, numbers] = await Promise.all([
    toItems(db, teamId, page),
    readFactoryNames(db, teamId, factoryUids),
    readStartNumbers(
      db,
      page.map(({ uid }) => uid),
    ),
  ]);
  const factoryOf = new Map(page.map((row) => [row.uid, row.factory_uid]));
  const automations = items.map(({ prompt: _prompt, config: _config, ...item }): TeamAutomation => {
    const factory_uid = factoryOf.get(item.uid) ?? '';
    return {
      ...item,
      factory_uid,
      factory_name: names.get(factory_uid) ?? '',
      ...(numbers.get(item.uid) ?? { last_24_hours: { started: 0, skipped: 0, waiting: 0, failed: 0 } }),
    };
  });
  return { automations, page_info };
}
