import type { ListRunsQuery } from '@runyard/contract/runs/run-list';
import { addColumnFilters, changedAfter, facetsOf, filtersOf, hasFacet, hourBounds, joinFacets } from './filters.ts';
import { afterPosition, orderOf } from './order.ts';
import { type Conditions, onlyFilter, type PageQuery, type PageRequest, startConditions } from './page-query.ts';
import { addAlternatives, alternativesOf, listAlternativesOf, partsOf } from './parts.ts';

/** Returns true if at least two filters have lists in the same order, by last change. */
export const canIntersect = (query: ListRunsQuery): boolean =>
  query.sort_by === 'updated_at' && (columnsOf(query).length > 1 || facetsOf(query).length > 1);

/**
 * Returns the filters by columns for which one index has the whole list, sorted by last change. Other filters need a merge of several
 * parts.
 */
const columnsOf = (query: ListRunsQuery): (keyof ListRunsQuery)[] =>
  filtersOf(query).columns.filter(
    (name) =>
      name !== 'created_before' &&
      listAlternativesOf({ bind: String }, onlyFilter(query, name)).every(({ length }) => length < 2),
  );

/**
 * Strategy for filters that each match many runs, but together match few runs. Intersects the lists of the filters with merge joins that
 * read only indexes. Reads only runs that are in all lists. May be called only if `canIntersect` returns true.
 */
export function intersectQuery(request: PageRequest): PageQuery {
  const { teamId, query, position, count } = request;
  const conditions = startConditions(teamId);
  const order = orderOf(query);
  const byColumns = columnsOf(query).length > 1;
  const lists = (byColumns ? columnLists : facetLists)(conditions, request);
  if (byColumns) joinFacets(conditions, query);
  addColumnFilters(conditions, query);
  addAlternatives(conditions, alternativesOf(conditions, query));
  if (position) conditions.texts.push(...afterPosition(conditions, query, position, null));
  const { direction } = order;
  // OFFSET 0 prevents PostgreSQL from combining lists of the same table into one scan, which would read the runs.
  const [first, ...others] = lists.map(
    (list, index) => `(${list} ORDER BY at ${direction}, id ${direction} OFFSET 0) l${index}`,
  );
  const joined = others.map((list, index) => `JOIN ${list} ON l${index + 1}.at = l0.at AND l${index + 1}.id = l0.id`);
  const text = `SELECT r.id, r.sort_value FROM (
      SELECT l0.id, l0.at FROM ${first} ${joined.join(' ')} ORDER BY l0.at ${direction}, l0.id ${direction} OFFSET 0
    ) m CROSS JOIN LATERAL (
      SELECT r.id, r.updated_at AS sort_value FROM runs r ${conditions.joins.join(' ')}
      WHERE r.id = m.id AND ${conditions.texts.join(' AND ')} OFFSET 0
    ) r ORDER BY m.at ${direction}, r.sort_value ${direction}, r.id ${direction} LIMIT ${conditions.bind(count)}`;
  return { text, values: conditions.values };
}

/** Returns, for each filter by a column, SQL for its list of runs in the order of the last change. */
function columnLists(conditions: Conditions, { query, position }: PageRequest): string[] {
  return columnsOf(query).map((name) => {
    const own = { ...conditions, joins: [], texts: ['r.team_id = $1'] };
    const alone = onlyFilter(query, name);
    addColumnFilters(own, alone);
    own.texts.push(...changedAfter(own, query).map((time) => `r.updated_at > ${time}`));
    const [part = []] = partsOf(own, alone, orderOf(query), position, null);
    return `SELECT r.id, r.updated_at AS at FROM runs r WHERE ${[...own.texts, ...part].join(' AND ')}`;
  });
}

/** Returns, for each filter by facets, SQL for its list of runs in the order of the hour of the last change. */
function facetLists({ bind }: Conditions, { query, position }: PageRequest): string[] {
  const bounds = hourBounds({ bind }, query, position);
  return facetsOf(query).map(
    (facet) => `SELECT f.run_id AS id, f.updated_hour AS at FROM run_facets f
      WHERE f.team_id = $1 AND ${hasFacet({ bind }, 'f', facet)} ${bounds}`,
  );
}
