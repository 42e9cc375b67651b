/**
 * Two filters or more that are each frequent and seldom found together: their indexes are all in the order of the page, so
 * they are merged, without a look at the runs that only one of them has.
 */
import type { ListRunsQuery } from '@runyard/contract/run-list';
import { type Conditions, startConditions } from './conditions.ts';
import { addColumnFilters, changedAfter, facetsOf, hourBounds, joinFacets, listsOf } from './filters.ts';
import { afterPosition, orderOf } from './order.ts';
import { onlyFilter, type PageQuery, type PageRequest, partsOf } from './query.ts';

/** Whether filters and sort give two such lists. */
export const canMerge = (query: ListRunsQuery): boolean =>
  query.sort_by === 'updated_at' && (columnsOf(query).length > 1 || facetsOf(query).length > 1);

const columnsOf = (query: ListRunsQuery): (keyof ListRunsQuery)[] =>
  listsOf(query).columns.filter(
    (name) => name !== 'created_before' && !(name === 'state' && new Set(query.state).size > 1),
  );

/** Null where they do not. */
export function mergeQuery(request: PageRequest): PageQuery | null {
  const { teamId, query, position, count } = request;
  if (!canMerge(query)) return null;
  const conditions = startConditions(teamId);
  const order = orderOf(query);
  const byColumns = columnsOf(query).length > 1;
  const lists = (byColumns ? columnLists : facetLists)(conditions, request);
  if (byColumns) joinFacets(conditions, facetsOf(query));
  addColumnFilters(conditions, query);
  if (query.state !== undefined) conditions.texts.push(`r.state = ANY(${conditions.bind(query.state)}::text[])`);
  if (position) conditions.texts.push(...afterPosition(conditions, query, position, null));
  const { direction } = order;
  // OFFSET 0 keeps PostgreSQL from taking the lists of one table for one list, whose runs it would read.
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

/** Of runs by their last change. */
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

/** Of facets by the hour of the last change. */
function facetLists({ bind }: Conditions, { query, position }: PageRequest): string[] {
  const bounds = hourBounds({ bind }, query, position);
  return facetsOf(query).map(
    (facet) => `SELECT f.run_id AS id, f.updated_hour AS at FROM run_facets f
      WHERE f.team_id = $1 AND f.facet = ${bind(facet)} ${bounds}`,
  );
}
