import type { RunState } from '@runyard/contract/runs/states';
import type { FoundThing, Search } from '../../platform/search.ts';
import { defineStatement, type RowOf, text, timestamp, uuid } from '../../platform/store/database/statement.ts';
import { isUuid } from '../../platform/store/database/uuid.ts';
import { findPage, type ReadPage } from './list/find-page.ts';
import { findOrRefuse } from './list/list.ts';

const foundRow = { uid: uuid, name: text(), state: text<RunState>(), changed_at: timestamp };
const foundColumns = 'r.id AS uid, r.title AS name, r.state, r.updated_at AS changed_at';

const readByIds = defineStatement({
  name: 'find_runs_by_ids',
  text: `SELECT ${foundColumns} FROM runs r WHERE r.team_id = $1 AND r.id = ANY($2::uuid[])`,
  row: foundRow,
});

type FoundRow = RowOf<typeof readByIds>;

const readFound: ReadPage<FoundRow> = async (db, _, page) =>
  await db.query(
    `WITH page AS MATERIALIZED (${page.text})
     SELECT ${foundColumns} FROM runs r JOIN page ON page.id = r.id ORDER BY r.updated_at DESC, r.id DESC`,
    page.values,
  );

const toThing = (row: FoundRow, is_id_match: boolean): FoundThing => ({
  ...row,
  is_id_match,
  path: `/runs/${row.uid}`,
});

/**
 * Finds a run by its id, or runs by words in the same way as the list of runs does. Returns the runs in the order of their last change, the
 * latest first.
 */
export const runSearch: Search = {
  kind: 'run',
  find: async (db, { teamId, text, ids, limit }) => {
    const uuids = ids.filter(isUuid);
    const byId = uuids.length === 0 ? [] : await db.query(readByIds, [teamId, uuids]);
    const query = { q: text, limit, view: 'summary', sort_by: 'updated_at', sort_order: 'desc' } as const;
    const wanted = { teamId, query, position: null, count: limit };
    const found = text === '' ? { rows: [] } : await findOrRefuse(query, () => findPage(db, wanted, readFound));
    const rows = 'rows' in found ? found.rows : [];
    return [...byId.map((row) => toThing(row, true)), ...rows.map((row) => toThing(row, false))];
  },
};
