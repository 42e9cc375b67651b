import { startConditions } from './conditions.ts';
import { addColumnFilters, facetsOf, joinFacets } from './filters.ts';
import { orderOf } from './order.ts';
import type { PageQuery, PageRequest } from './page-query.ts';
import { mergeParts, partsOf } from './parts.ts';

/**
 * Strategy for at most one filter: reads the page from the index that has the runs of the filter in the order of the page. The number
 * of rows that it reads does not grow with the number of runs.
 */
export function inOrderQuery({ teamId, query, position, count }: PageRequest): PageQuery {
  const conditions = startConditions(teamId);
  const order = orderOf(query);
  const facetHour = joinFacets(conditions, facetsOf(query));
  addColumnFilters(conditions, query);
  const hour = query.sort_by === 'updated_at' ? facetHour : null;
  const parts = partsOf(conditions, query, order, position, hour);
  const limit = conditions.bind(count);
  return { text: mergeParts(conditions, order, parts, hour, limit), values: conditions.values };
}
