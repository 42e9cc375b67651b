/** Lists the automations of all factories of a team, with the numbers of runs that they have started. */
import type {
  ListTeamAutomationsResponse,
  ListTeamThingsQuery,
  TeamAutomation,
} from '@runyard/contract/automations/team-lists';
import { type CursorSigner, listIdentity, readCursor, writeCursor } from '../../platform/store/cursor.ts';
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

const readPage = defineStatement({
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
  { limit, cursor, factory_uid: factoryUid }: ListTeamThingsQuery,
): Promise<ListTeamAutomationsResponse | null> {
  const identity = listIdentity(['automations of team', teamId, factoryUid ?? null]);
  const read = cursor === undefined ? undefined : readCursor(signer, identity, cursor);
  if (read?.ok === false) return null;
  const after = read?.position;
  const rows = await db.query(readPage, [teamId, factoryUid ?? null, after?.value ?? '', after?.id ?? '', limit + 1]);
  const page = rows.slice(0, limit);
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
  const last = page.at(-1);
  const hasNext = rows.length > page.length && last !== undefined;
  return {
    automations,
    page_info: {
      has_next_page: hasNext,
      ...(hasNext ? { next_cursor: writeCursor(signer, identity, { value: last.name, id: last.uid }) } : {}),
    },
  };
}
