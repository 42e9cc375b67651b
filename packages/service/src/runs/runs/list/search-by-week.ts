import { startConditions } from './conditions.ts';
import { addColumnFilters, changedAfter, facetsOf, joinFacets } from './filters.ts';
import { orderBy, orderOf } from './order.ts';
import type { PageQuery, PageRequest } from './page-query.ts';
import { partsOf } from './parts.ts';
import { queryOfWeek, type SearchTemplate } from './search-words.ts';

/**
 * Strategy for a search that no probe answers: looks for the words week by week, in the order of the list, until the page
 * is full. The index of `run_search` has the words of a team's runs of one week side by side.
 */
export function searchByWeekQuery(
  { teamId, query, position, count }: PageRequest,
  template: SearchTemplate,
): PageQuery {
  const conditions = startConditions(teamId);
  const { bind, texts } = conditions;
  const order = orderOf(query);
  joinFacets(conditions, facetsOf(query));
  addColumnFilters(conditions, query);
  const byChange = query.sort_by === 'updated_at';
  const parts = partsOf(conditions, query, order, position, 'm.updated_hour');
  texts.push(`(${parts.map((part) => part.join(' AND ') || 'true').join(' OR ')})`);

  const last = position && byChange ? `${bind(position.value)}::timestamptz` : null;
  const isDown = query.sort_order === 'desc';
  const from = ['(SELECT min(updated_at) FROM runs WHERE team_id = $1)', ...changedAfter(conditions, query)];
  const to = ['(SELECT max(updated_at) FROM runs WHERE team_id = $1)'];
  if (last) (isDown ? to : from).push(last);
  const hours = last ? `AND s.updated_hour ${isDown ? '<=' : '>='} run_hour(${last})` : '';

  const limit = bind(count);
  const direction = order.direction;
  // OFFSET 0 makes the planner keep the written order of joins, because it cannot know in how many runs of a week the words occur.
  const text = `SELECT r.id, r.sort_value FROM (
      SELECT week, ${queryOfWeek(bind(template), 'week')} AS query
      FROM generate_series(search_week(greatest(${from.join(', ')})), search_week(least(${to.join(', ')}))) week
      ORDER BY week ${direction}
    ) w CROSS JOIN LATERAL (
      SELECT r.id, r.sort_value FROM (
        SELECT s.run_id, s.updated_hour FROM run_search s WHERE s.parts @@ w.query AND s.team_id = $1 ${hours}
        ${byChange ? `ORDER BY s.updated_hour ${direction}` : ''} OFFSET 0
      ) m CROSS JOIN LATERAL (
        SELECT r.id, ${order.column} AS sort_value FROM runs r ${conditions.joins.join(' ')}
        WHERE r.id = m.run_id AND ${texts.join(' AND ')} OFFSET 0
      ) r
      ${byChange ? `ORDER BY m.updated_hour ${direction}, r.sort_value ${direction}, r.id ${direction} LIMIT ${limit}` : 'OFFSET 0'}
    ) r
    ${byChange ? `ORDER BY w.week ${direction}, r.sort_value ${direction}, r.id ${direction}` : orderBy(order, 'r.')} LIMIT ${limit}`;
  return { text, values: conditions.values };
}
