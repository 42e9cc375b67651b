import type { ListRunsQuery } from '@runyard/contract/runs/run-list';
import type { Queryable } from '../../../platform/store/database/database.ts';
import { addColumnFilters, changedAfter, type Facet, facetsOf, hasFacet, hourBounds } from './filters.ts';
import { orderBy, orderOf } from './order.ts';
import {
  type Conditions,
  foundPage,
  onlyFilter,
  type PageQuery,
  type PageRequest,
  startConditions,
} from './page-query.ts';
import { addAlternatives, alternativesOf, mergeParts, partsOf } from './parts.ts';
import { matchOf, type SearchTemplate } from './search-words.ts';
import type { Probe } from './strategies.ts';

/**
 * Strategy for several filters: reads the first `length` runs from the list of one filter, and selects those that match the other filters.
 * Returns null if the selected runs do not fill the page although the list has more runs.
 */
export async function probeList(
  db: Queryable,
  request: PageRequest,
  { list, length }: Probe,
  search: SearchTemplate | null,
): Promise<PageQuery | null> {
  const { query, count } = request;
  const conditions = startConditions(request.teamId);
  const order = orderOf(query);
  const readList =
    'facet' in list ? readFacetList(conditions, request, list.facet) : readColumnList(conditions, request, list.filter);
  const others = facetsOf(query).filter((facet) => !('facet' in list && String(facet) === String(list.facet)));
  const checks = others.map(
    (facet, index) => `CROSS JOIN LATERAL (
      SELECT FROM run_facets f WHERE f.run_id = p.id AND ${hasFacet(conditions, 'f', facet)} OFFSET 0) f${index}`,
  );
  if (search !== null) {
    checks.push(`CROSS JOIN LATERAL (
      SELECT FROM run_search s WHERE s.run_id = p.id AND ${matchOf(conditions, search)} OFFSET 0) s`);
  }
  addColumnFilters(conditions, query);
  addAlternatives(conditions, alternativesOf(conditions, query));
  if ('facet' in list) conditions.texts.push(...afterOf(conditions, request));
  const size = conditions.bind(length);
  // Drop the runs of the last hour: a facet's list is sorted by hours only, so this hour may have further runs that were not read.
  const within =
    'facet' in list
      ? `WHERE (SELECT count(*) FROM probed) < ${size} OR p.hour <> (SELECT ${query.sort_order === 'asc' ? 'max' : 'min'}(hour) FROM probed)`
      : '';
  const [row] = await db.query<{ probed: number; ids: string[] | null; times: (string | null)[] | null }>(
    `WITH probed AS MATERIALIZED (${readList(size)}), page AS (
       SELECT r.id, r.sort_value FROM probed p ${checks.join(' ')}
       CROSS JOIN LATERAL (
         SELECT r.id, ${order.column} AS sort_value FROM runs r WHERE r.id = p.id AND ${conditions.texts.join(' AND ')} OFFSET 0) r
       ${within} ${orderBy(order, 'r.')} LIMIT ${conditions.bind(count)}
     )
     SELECT (SELECT count(*)::int FROM probed) AS probed, array_agg(id::text) AS ids, array_agg(sort_value::text) AS times FROM page`,
    conditions.values,
  );
  const ids = row?.ids ?? [];
  if (!row || (ids.length < count && row.probed === length)) return null;
  return foundPage(query, ids, row.times ?? []);
}

/** Returns SQL conditions that are true if a run comes after the position of the request. */
function afterOf(conditions: Conditions, { query, position }: PageRequest): readonly string[] {
  return partsOf(conditions, onlyFilter(query, null), orderOf(query), position, null)[0] ?? [];
}

/** Returns SQL for the first `size` runs of a list. */
export type ReadList = (size: string) => string;

export function readColumnList(
  conditions: Conditions,
  request: PageRequest,
  filter: keyof ListRunsQuery | null,
): ReadList {
  const { query, position } = request;
  const own = { joins: [], texts: ['r.team_id = $1'], values: conditions.values, bind: conditions.bind };
  const alone = onlyFilter(query, filter);
  addColumnFilters(own, alone);
  if (query.sort_by === 'updated_at')
    own.texts.push(...changedAfter(own, query).map((time) => `r.updated_at > ${time}`));
  const parts = partsOf(own, alone, orderOf(query), position, null);
  return (size) => mergeParts(own, orderOf(query), parts, null, size);
}

export function readFacetList({ bind }: Conditions, { query, position }: PageRequest, facet: Facet): ReadList {
  const { direction } = orderOf(query);
  const conditions = facet.map((each) => hasFacet({ bind }, 'f', [each]));
  const bounds = hourBounds({ bind }, query, position);
  return (size) => {
    const end = `ORDER BY hour ${direction}, id ${direction} LIMIT ${size}`;
    const lists = conditions.map(
      (condition) => `(SELECT f.run_id AS id, f.updated_hour AS hour FROM run_facets f
        WHERE f.team_id = $1 AND ${condition} ${bounds} ${end})`,
    );
    return lists.length === 1 ? lists.join('') : `${lists.join(' UNION ALL ')} ${end}`;
  };
}
