/**
 * Several filters at once. Each of them alone is a list in the order of the page; which of the lists holds many runs that
 * match the other filters, nobody knows. So some runs of each list are looked at, then more of each. What is read is
 * bounded; where no list fills the page, all that the filters find is sorted.
 */
import type { ListRunsQuery } from '@runyard/contract/run-list';
import type { Queryable } from '../../store/database/database.ts';
import { type Conditions, startConditions } from './conditions.ts';
import { addColumnFilters, changedAfter, facetsOf, hourBounds, listsOf } from './filters.ts';
import { canMerge } from './merge.ts';
import { orderOf } from './order.ts';
import { foundPage, onlyFilter, orderBy, type PageQuery, type PageRequest, partsOf, union } from './query.ts';
import { matchOf, type SearchTemplate } from './search.ts';

/** The list to go along: of runs that have a facet, of those that match a filter on columns, or all in the order of the sort. */
export type Walk = { readonly facet: string } | { readonly filter: keyof ListRunsQuery } | { readonly filter: null };

/** How many runs of a list are looked at: a few of each first; more of each where the lists cannot be merged. */
const shortWalk = 300;
const longWalk = 2000;
/** Where the order is another one than that of the filters. */
const sortWalk = 4000;
/** Where words are looked for, which are read from another table. */
const searchWalk = 1500;

/** What to walk along, and how far; none: one index gives the page. */
export function walksOf(
  query: ListRunsQuery,
  search: SearchTemplate | null,
): readonly { readonly walk: Walk; readonly length: number }[] {
  const { facets, columns } = listsOf(query);
  const inOrder = { walk: { filter: null }, length: search === null ? sortWalk : searchWalk };
  if (query.sort_by !== 'updated_at') {
    const isFiltered = facets.length + columns.length > 0 || changedAfter({ bind: String }, query).length > 0;
    return isFiltered || search !== null ? [inOrder] : [];
  }
  const walks = [...facets.map((facet) => ({ facet })), ...columns.map((filter) => ({ filter }))];
  if (search !== null) return walks.map((walk) => ({ walk, length: searchWalk }));
  if (walks.length < 2) return [];
  return (canMerge(query) ? [shortWalk] : [shortWalk, longWalk]).flatMap((length) =>
    walks.map((walk) => ({ walk, length })),
  );
}

/** The page, where it is among the first `length` runs of the list; else null. */
export async function walkAlong(
  db: Queryable,
  request: PageRequest,
  { walk, length }: { readonly walk: Walk; readonly length: number },
  search: SearchTemplate | null,
): Promise<PageQuery | null> {
  const { query, count } = request;
  const conditions = startConditions(request.teamId);
  const order = orderOf(query);
  const walked =
    'facet' in walk ? alongFacet(conditions, request, walk.facet) : alongColumn(conditions, request, walk.filter);
  const others = facetsOf(query).filter((facet) => !('facet' in walk && facet === walk.facet));
  const checks = others.map(
    (facet, index) => `CROSS JOIN LATERAL (
      SELECT FROM run_facets f WHERE f.run_id = w.id AND f.facet = ${conditions.bind(facet)} OFFSET 0) f${index}`,
  );
  if (search !== null) {
    checks.push(`CROSS JOIN LATERAL (
      SELECT FROM run_search s WHERE s.run_id = w.id AND ${matchOf(conditions, search)} OFFSET 0) s`);
  }
  addColumnFilters(conditions, query);
  if (query.state !== undefined) conditions.texts.push(`r.state = ANY(${conditions.bind(query.state)}::text[])`);
  if ('facet' in walk) conditions.texts.push(...afterOf(conditions, request));
  const size = conditions.bind(length);
  // Of an hour that may go on behind the end of the walk nothing is known.
  const within =
    'facet' in walk
      ? `WHERE (SELECT count(*) FROM walked) < ${size} OR w.hour <> (SELECT ${query.sort_order === 'asc' ? 'max' : 'min'}(hour) FROM walked)`
      : '';
  const [row] = await db.query<{ walked: number; ids: string[] | null; times: (string | null)[] | null }>(
    `WITH walked AS MATERIALIZED (${walked(size)}), page AS (
       SELECT r.id, r.sort_value FROM walked w ${checks.join(' ')}
       CROSS JOIN LATERAL (
         SELECT r.id, ${order.column} AS sort_value FROM runs r WHERE r.id = w.id AND ${conditions.texts.join(' AND ')} OFFSET 0) r
       ${within} ${orderBy(order, 'r.')} LIMIT ${conditions.bind(count)}
     )
     SELECT (SELECT count(*)::int FROM walked) AS walked, array_agg(id::text) AS ids, array_agg(sort_value::text) AS times FROM page`,
    conditions.values,
  );
  const found = row?.ids ?? [];
  if (!row || (found.length < count && row.walked === length)) return null;
  return foundPage(query, found, row.times ?? []);
}

function afterOf(conditions: Conditions, { query, position }: PageRequest): readonly string[] {
  return partsOf(conditions, onlyFilter(query, null), orderOf(query), position, null)[0] ?? [];
}

type Walked = (size: string) => string;

function alongColumn(conditions: Conditions, request: PageRequest, filter: keyof ListRunsQuery | null): Walked {
  const { query, position } = request;
  const own = { joins: [], texts: ['r.team_id = $1'], values: conditions.values, bind: conditions.bind };
  const alone = onlyFilter(query, filter);
  addColumnFilters(own, alone);
  if (query.sort_by === 'updated_at')
    own.texts.push(...changedAfter(own, query).map((time) => `r.updated_at > ${time}`));
  const parts = partsOf(own, alone, orderOf(query), position, null);
  return (size) => union(own, orderOf(query), parts, null, size);
}

function alongFacet({ bind }: Conditions, { query, position }: PageRequest, facet: string): Walked {
  const { direction } = orderOf(query);
  const name = bind(facet);
  const bounds = hourBounds({ bind }, query, position);
  return (size) => `SELECT f.run_id AS id, f.updated_hour AS hour FROM run_facets f
    WHERE f.team_id = $1 AND f.facet = ${name} ${bounds}
    ORDER BY f.updated_hour ${direction}, f.run_id ${direction} LIMIT ${size}`;
}
