import type { ListRunsQuery } from '@runyard/contract/runs/run-list';
import type { CursorPosition } from '../../../platform/store/cursor.ts';
import type { Queryable } from '../../../platform/store/database/database.ts';
import { sortTypeOf } from './order.ts';
import { arePaired } from './parts.ts';

/** Collects the conditions of a list as SQL, with their parameters. */
export interface Conditions {
  /** SQL joins that follow `FROM runs r`. */
  readonly joins: string[];
  /** SQL conditions; a run of the list meets all of them. */
  readonly texts: string[];
  readonly values: unknown[];
  /** Adds a value to the parameters and returns the placeholder of the value. */
  bind(value: unknown): string;
}

/** Returns conditions that so far contain only the condition on the team, which is the parameter `$1`. */
export function startConditions(teamId: string): Conditions {
  const values: unknown[] = [teamId];
  return {
    joins: [],
    texts: ['r.team_id = $1'],
    values,
    bind: (value) => {
      values.push(value);
      return `$${values.length}`;
    },
  };
}

/** A requested page of a list. */
export interface PageRequest {
  readonly teamId: string;
  readonly query: ListRunsQuery;
  /** The position after which the page begins; null: the page begins with the first run. */
  readonly position: CursorPosition | null;
  /** Maximum number of rows to return. */
  readonly count: number;
}

/** A statement that returns the columns `id` and `sort_value` of the runs of a page, in order. */
export interface PageQuery {
  readonly text: string;
  readonly values: readonly unknown[];
}

/** Returns the query of a page whose runs are already known, by their ids and sort values. */
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

/**
 * Reads a page from a statement with a relation `page`. `isFound`: SQL condition that the page is complete. Returns null if the page is not
 * complete.
 */
export async function readFound(
  db: Queryable,
  { query }: PageRequest,
  { values }: Conditions,
  relations: readonly string[],
  isFound: string,
): Promise<PageQuery | null> {
  const [row] = await db.query<{ is_found: boolean; ids: string[] | null; keys: (string | null)[] | null }>(
    `WITH ${relations.join(', ')}
     SELECT ${isFound} AS is_found, array_agg(id::text) AS ids, array_agg(sort_value::text) AS keys FROM page`,
    values,
  );
  return row?.is_found ? foundPage(query, row.ids ?? [], row.keys ?? []) : null;
}

/** Returns the query with only this filter; null: without any filter. If states and sources are one filter, `source` names this filter. */
export function onlyFilter(query: ListRunsQuery, filter: keyof ListRunsQuery | null): ListRunsQuery {
  const { limit, cursor, view, sort_by, sort_order, state, task_status } = query;
  const only = filter === null ? {} : { [filter]: query[filter] };
  const paired = filter === 'source' && arePaired(query) ? { state, task_status } : {};
  return { limit, cursor, view, sort_by, sort_order, ...only, ...paired };
}
