import { startConditions } from './conditions.ts';
import { addColumnFilters, facetsOf, firstFacet, hasFacet, joinFacets } from './filters.ts';
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
  const facets = facetsOf(query);
  const facetHour = joinFacets(conditions, facets);
  addColumnFilters(conditions, query);
  const hour = query.sort_by === 'updated_at' ? facetHour : null;
  const several = facets.find((facet) => facet.length > 1) ?? [];
  // Each facet has an order of its own in the index.
  const ofFacets = several.map((facet) => hasFacet(conditions, firstFacet, [facet]));
  const parts = partsOf(conditions, query, order, position, hour).flatMap((part) =>
    ofFacets.length === 0 || hour === null ? [part] : ofFacets.map((ofFacet) => [ofFacet, ...part]),
  );
  const limit = conditions.bind(count);
  return { text: mergeParts(conditions, order, parts, hour, limit), values: conditions.values };
}
