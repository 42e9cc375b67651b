import { startConditions } from './conditions.ts';
import { addColumnFilters, facetsOf, joinFacets } from './filters.ts';
import { orderBy, orderOf } from './order.ts';
import type { PageQuery, PageRequest } from './page-query.ts';
import { partsOf } from './parts.ts';

/** Last strategy: reads all runs that match the filters, and sorts them. The number of rows that it reads grows with the matches. `runId`: only this run may match. */
export function sortMatchesQuery({ teamId, query, position, count }: PageRequest, runId?: string): PageQuery {
  const conditions = startConditions(teamId);
  const order = orderOf(query);
  joinFacets(conditions, facetsOf(query));
  addColumnFilters(conditions, query);
  if (runId !== undefined) conditions.texts.push(`r.id = ${conditions.bind(runId)}::uuid`);
  const parts = partsOf(conditions, query, order, position, null).map((part) => part.join(' AND ') || 'true');
  const text = `WITH found AS MATERIALIZED (
      SELECT r.id, ${order.column} AS sort_value FROM runs r ${conditions.joins.join(' ')}
      WHERE ${conditions.texts.join(' AND ')} AND (${parts.join(' OR ')})
    ) SELECT id, sort_value FROM found ${orderBy(order, '')} LIMIT ${conditions.bind(count)}`;
  return { text, values: conditions.values };
}
