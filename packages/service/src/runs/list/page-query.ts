/**
 * The statement of one page. Every filter alone, and every sort alone, is read from an index in the order of the page,
 * so that what is read does not grow with the number of runs (docs/decisions/run-list.md).
 */
import type { ListRunsQuery } from '@runyard/contract/run-list';
import type { CursorPosition } from '../../store/paging/cursor.ts';
import { type Conditions, startConditions } from './conditions.ts';
import { addColumnFilters, facetsOf, joinFacets } from './filters.ts';
import { afterPosition, type ListOrder, orderOf, sortTypeOf } from './order.ts';

/** Gives `id` and `sort_value` of the page's runs, in order. */
export interface PageQuery {
  readonly text: string;
  readonly values: readonly unknown[];
}

/** Greatest span of each class of `run_span`, but of the last, which has none. */
const spans = ['5 minutes', '1 hour', '12 hours', '7 days'];

export interface PageRequest {
  readonly teamId: string;
  readonly query: ListRunsQuery;
  readonly position: CursorPosition | null;
  /** Rows to give at most. */
  readonly count: number;
}

export function pageQuery({ teamId, query, position, count }: PageRequest): PageQuery {
  const conditions = startConditions(teamId);
  const order = orderOf(query);
  const facetHour = joinFacets(conditions, facetsOf(query));
  addColumnFilters(conditions, query);
  const hour = query.sort_by === 'updated_at' ? facetHour : null;
  const parts = partsOf(conditions, query, order, position, hour);
  const limit = conditions.bind(count);
  const text = union(conditions, order, parts, hour, limit);
  return { text, values: conditions.values };
}

/**
 * Conditions of which one at most holds for a run of the list. Each part alone comes from an index in the right order;
 * the list is their merge.
 */
export function partsOf(
  conditions: Conditions,
  query: ListRunsQuery,
  order: ListOrder,
  position: CursorPosition | null,
  hour: string | null,
): string[][] {
  const { bind, texts } = conditions;
  const after = position ? afterPosition(conditions, query, position, hour) : [];
  const states = [...new Set(query.state ?? [])];
  const byChange = query.sort_by === 'updated_at' && hour === null;
  if (states.length > 1 && byChange) return states.map((state) => [`r.state = ${bind(state)}`, ...after]);
  if (states.length === 1) texts.push(`r.state = ${bind(states[0])}`);
  else if (states.length > 1) texts.push(`r.state = ANY(${bind(states)}::text[])`);
  if (order.hasEmptyPart) {
    const empty = `${order.column} IS NULL`;
    return position?.value === null ? [[empty, ...after]] : [[`${order.column} IS NOT NULL`, ...after], [empty]];
  }
  if (query.created_before !== undefined && byChange && query.sort_order === 'desc') {
    const before = `${bind(query.created_before)}::timestamptz`;
    return [...spans, null].map((span, index) => [
      `run_span(r.created_at, r.updated_at) = ${index}`,
      ...(span === null ? [] : [`r.updated_at < ${before} + interval '${span}'`]),
      ...after,
    ]);
  }
  return [after];
}

/** A page that is found already: ids, and what each is sorted by. */
export function foundPage(
  query: ListRunsQuery,
  ids: readonly string[],
  sortValues: readonly (string | null)[],
): PageQuery {
  return {
    text: `SELECT id, sort_value FROM unnest($1::uuid[], $2::${sortTypeOf(query)}[]) page(id, sort_value)`,
    values: [ids, sortValues],
  };
}

/** The query with no other filter than this one. */
export function onlyFilter(query: ListRunsQuery, filter: keyof ListRunsQuery | null): ListRunsQuery {
  const { limit, cursor, sort_by, sort_order } = query;
  return { limit, cursor, sort_by, sort_order, ...(filter === null ? {} : { [filter]: query[filter] }) };
}

/** The page by sorting all that the filters find: what is read grows with that, not with all runs. */
export function sortingQuery({ teamId, query, position, count }: PageRequest): PageQuery {
  const conditions = startConditions(teamId);
  const order = orderOf(query);
  joinFacets(conditions, facetsOf(query));
  addColumnFilters(conditions, query);
  const parts = partsOf(conditions, query, order, position, null).map((part) => part.join(' AND ') || 'true');
  const text = `WITH found AS MATERIALIZED (
      SELECT r.id, ${order.column} AS sort_value FROM runs r ${conditions.joins.join(' ')}
      WHERE ${conditions.texts.join(' AND ')} AND (${parts.join(' OR ')})
    ) SELECT id, sort_value FROM found ${orderBy(order, '')} LIMIT ${conditions.bind(count)}`;
  return { text, values: conditions.values };
}

/** Order of `id` and `sort_value` in a relation `of`. */
export const orderBy = ({ collation, direction }: ListOrder, of: string): string =>
  `ORDER BY ${of}sort_value${collation} ${direction} NULLS LAST, ${of}id ${direction}`;

/** The first `limit` runs of all parts together. */
export function union(
  { joins, texts }: Conditions,
  { column, collation, direction }: ListOrder,
  parts: readonly (readonly string[])[],
  hour: string | null,
  limit: string,
): string {
  const selects = parts.map(
    (part) => `SELECT r.id, ${column} AS sort_value FROM runs r ${joins.join(' ')}
      WHERE ${[...texts, ...part].join(' AND ')}
      ORDER BY ${hour ? `${hour} ${direction}, ` : ''}${column} ${direction}, r.id ${direction} LIMIT ${limit}`,
  );
  if (selects.length === 1) return selects.join('');
  return `SELECT id, sort_value FROM (${selects.map((select) => `(${select})`).join(' UNION ALL ')}) parts
    ORDER BY sort_value${collation} ${direction} NULLS LAST, id ${direction} LIMIT ${limit}`;
}
