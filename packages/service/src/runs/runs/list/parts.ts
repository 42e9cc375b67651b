/** Splits a list into parts that each come from an index in the order of the page, and merges the parts. */
import type { ListRunsQuery } from '@runyard/contract/run-list';
import type { CursorPosition } from '../../../platform/store/paging/cursor.ts';
import type { Conditions } from './conditions.ts';
import { afterPosition, type ListOrder } from './order.ts';

/** Longest time from creation to last change in each class of `run_span`; the last class, which is not in this list, has no limit. */
const spans = ['5 minutes', '1 hour', '12 hours', '7 days'];

/**
 * Returns the conditions of each part of the list. At most one part holds for a run. `hour` is the column with the hour of
 * the last change, where the list is read by it. Adds conditions that hold for all parts to `conditions`.
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

/** Returns SQL of the first `limit` runs of all parts together, in order. */
export function mergeParts(
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
