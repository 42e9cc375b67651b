import type { ListRunsQuery } from '@runyard/contract/run-list';
import type { CursorPosition } from '../../store/paging/cursor.ts';
import type { Conditions } from './conditions.ts';

/** What a list is sorted by; the id decides between equals. Text by bytes, the same on every server. */
interface SortKey {
  /** Of the run `r`. */
  readonly column: string;
  readonly type: 'timestamptz' | 'text';
}

const sortKeys: Record<ListRunsQuery['sort_by'], SortKey> = {
  updated_at: { column: 'r.updated_at', type: 'timestamptz' },
  created_at: { column: 'r.created_at', type: 'timestamptz' },
  title: { column: 'r.title COLLATE "C"', type: 'text' },
  agent: { column: 'r.skill_spec COLLATE "C"', type: 'text' },
};

/** SQL type of what the list is sorted by. */
export const sortTypeOf = (query: ListRunsQuery): SortKey['type'] => sortKeys[query.sort_by].type;

export interface ListOrder {
  readonly column: string;
  /** How the column's values are compared. */
  readonly collation: string;
  readonly direction: 'ASC' | 'DESC';
  /** Runs without a value come last in both directions: they are a list of their own behind the others. */
  readonly hasEmptyPart: boolean;
}

export function orderOf(query: ListRunsQuery): ListOrder {
  return {
    column: sortKeys[query.sort_by].column,
    collation: sortKeys[query.sort_by].type === 'text' ? ' COLLATE "C"' : '',
    direction: query.sort_order === 'asc' ? 'ASC' : 'DESC',
    hasEmptyPart: query.sort_by === 'agent',
  };
}

/**
 * Conditions that a run comes after the position. `hour` is the column with the hour of its last change, where the plan
 * goes by it.
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
