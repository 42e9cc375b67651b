import type { ListRunsQuery } from '@runyard/contract/runs/run-list';
import type { CursorPosition } from '../../../platform/store/cursor.ts';
import type { Conditions } from './page-query.ts';

/**
 * Sort key of a list. Runs with equal values are sorted by id. Text is compared by bytes, because this order is the same on every server.
 */
interface SortKey {
  /** Column of the run `r`. */
  readonly column: string;
  readonly type: 'timestamptz' | 'text';
}

const sortKeys: Record<ListRunsQuery['sort_by'], SortKey> = {
  updated_at: { column: 'r.updated_at', type: 'timestamptz' },
  created_at: { column: 'r.created_at', type: 'timestamptz' },
  title: { column: 'r.title COLLATE "C"', type: 'text' },
  agent: { column: 'r.skill_spec COLLATE "C"', type: 'text' },
};

/** Returns the SQL type of the sort key. */
export const sortTypeOf = (query: ListRunsQuery): SortKey['type'] => sortKeys[query.sort_by].type;

/** SQL for the order of a list. */
export interface ListOrder {
  readonly column: string;
  /** SQL for the collation of the column, with a space before it; '' for times. */
  readonly collation: string;
  readonly direction: 'ASC' | 'DESC';
  /**
   * The column without its collation, if some runs have no value in it; otherwise null. These runs come last in both directions, as a
   * separate part of the list.
   */
  readonly nullable: string | null;
}

/** Returns the order that the query requests. */
export function orderOf(query: ListRunsQuery): ListOrder {
  return {
    column: sortKeys[query.sort_by].column,
    collation: sortKeys[query.sort_by].type === 'text' ? ' COLLATE "C"' : '',
    direction: query.sort_order === 'asc' ? 'ASC' : 'DESC',
    nullable: query.sort_by === 'agent' ? 'r.skill_spec' : null,
  };
}

/** Returns SQL that orders a relation with the columns `id` and `sort_value`. `of`: alias of the relation with a dot, or ''. */
export const orderBy = ({ collation, direction }: ListOrder, of: string): string =>
  `ORDER BY ${of}sort_value${collation} ${direction} NULLS LAST, ${of}id ${direction}`;

/**
 * Returns SQL conditions that are true if a run comes after the position. `hour`: the column with the hour of the last change, if the
 * list uses this column.
 */
export function afterPosition(
  { bind }: Conditions,
  query: ListRunsQuery,
  position: CursorPosition,
  hour: string | null,
): string[] {
  const { column, type } = sortKeys[query.sort_by];
  const beyond = query.sort_order === 'asc' ? '>' : '<';
  const id = `${bind(position.id)}::uuid`;
  if (position.value === null) return [`r.id ${beyond} ${id}`];
  const value = `${bind(position.value)}::${type}`;
  return [
    `(${column}, r.id) ${beyond} (${value}, ${id})`,
    ...(hour === null ? [] : [`${hour} ${beyond}= run_hour(${value})`]),
  ];
}
