import type { ListRunsQuery } from '@runyard/contract/runs/run-list';
import type { CursorPosition } from '../../../platform/store/cursor.ts';

/**
 * Sort key of a list. Runs with equal values are sorted by id. Text is compared by bytes, because this order is the same on every server.
 */
interface SortKey {
  /** Column of the run `r` that pages show. */
  readonly column: string;
  /** Column of the index in the order of the list. It differs from `column` for runs at work, if the list is sorted by last change. */
  readonly indexed: string;
  readonly type: 'timestamptz' | 'text';
}

const key = (column: string, type: SortKey['type'], indexed = column): SortKey => ({ column, indexed, type });

const sortKeys: Record<ListRunsQuery['sort_by'], SortKey> = {
  updated_at: key('r.updated_at', 'timestamptz', 'r.list_at'),
  created_at: key('r.created_at', 'timestamptz'),
  title: key('r.title COLLATE "C"', 'text'),
  agent: key('r.skill_spec COLLATE "C"', 'text'),
};

/** The order of a list, as SQL. */
export interface ListOrder extends SortKey {
  readonly direction: 'ASC' | 'DESC';
  /** Operator between the sort value of a run and that of an earlier run of the list. */
  readonly beyond: '>' | '<';
  /** True if some runs have no value in the column. They come last in both directions, in the order of their ids. */
  readonly isNullable: boolean;
}

/** Returns the order that the query requests. */
export function orderOf({ sort_by, sort_order }: Pick<ListRunsQuery, 'sort_by' | 'sort_order'>): ListOrder {
  const isUp = sort_order === 'asc';
  return {
    ...sortKeys[sort_by],
    direction: isUp ? 'ASC' : 'DESC',
    beyond: isUp ? '>' : '<',
    isNullable: sort_by === 'agent',
  };
}

/** Returns SQL that orders a relation with the columns `id` and `sort_value`. `of`: alias of the relation with a dot, or ''. */
export function orderBy({ type, direction }: ListOrder, of = ''): string {
  const collation = type === 'text' ? ' COLLATE "C"' : '';
  return `ORDER BY ${of}sort_value${collation} ${direction} NULLS LAST, ${of}id ${direction}`;
}

/** Returns an SQL condition that is true if the run `r` comes after the position. `column`: the column that has the sort value. */
export function isAfter(
  { beyond, type, isNullable }: ListOrder,
  column: string,
  { value, id }: CursorPosition,
  bind: (value: unknown) => string,
): string {
  if (value === null) return `(${column} IS NULL AND r.id ${beyond} ${bind(id)}::uuid)`;
  const isLater = `(${column}, r.id) ${beyond} (${bind(value)}::${type}, ${bind(id)}::uuid)`;
  return isNullable ? `(${isLater} OR ${column} IS NULL)` : isLater;
}
