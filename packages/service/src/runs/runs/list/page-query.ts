import type { ListRunsQuery } from '@runyard/contract/runs/run-list';
import type { CursorPosition } from '../../../platform/store/paging/cursor.ts';
import { sortTypeOf } from './order.ts';

/** A page that is asked for. */
export interface PageRequest {
  readonly teamId: string;
  readonly query: ListRunsQuery;
  /** The page begins after it; null: at the first run. */
  readonly position: CursorPosition | null;
  /** Largest number of rows to return. */
  readonly count: number;
}

/** A statement that returns `id` and `sort_value` of the page's runs, in order. */
export interface PageQuery {
  readonly text: string;
  readonly values: readonly unknown[];
}

/** Returns the query of a page whose runs are found already, by their ids and sort values. */
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

/** Returns the query with this filter only; null: with no filter. */
export function onlyFilter(query: ListRunsQuery, filter: keyof ListRunsQuery | null): ListRunsQuery {
  const { limit, cursor, sort_by, sort_order } = query;
  return { limit, cursor, sort_by, sort_order, ...(filter === null ? {} : { [filter]: query[filter] }) };
}
