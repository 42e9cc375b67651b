import type { ListRunsQuery } from '@runyard/contract/run-list';
import type { ListRunsResponse } from '@runyard/contract/runs';
import type { Fault } from '../fault.ts';
import type { Queryable } from '../store/database.ts';
import { type CursorPosition, type CursorSigner, listIdentity, readCursor, writeCursor } from './cursor.ts';
import { addFilters, type Conditions, startConditions } from './list-filters.ts';
import { findRun, type ReadContext, type RunRow, selectRuns, toRunItems } from './read.ts';

/** `invalid` 400. */
export type ListOutcome =
  | { readonly kind: 'ok'; readonly page: ListRunsResponse }
  | { readonly kind: 'invalid'; readonly faults: Fault[] };

/** What a list is sorted by. Text by bytes, the same on every server. */
const sortKeys = {
  updated_at: { column: 'r.updated_at', type: 'timestamptz' },
  created_at: { column: 'r.created_at', type: 'timestamptz' },
  title: { column: 'r.title COLLATE "C"', type: 'text' },
  agent: { column: 'r.skill_spec COLLATE "C"', type: 'text' },
} as const;

/** What comes after the position; runs without a skill are last in both orders. */
function afterPosition(conditions: Conditions, query: ListRunsQuery, position: CursorPosition): string {
  const { column, type } = sortKeys[query.sort_by];
  const beyond = query.sort_order === 'asc' ? '>' : '<';
  const id = `${conditions.bind(position.id)}::uuid`;
  if (position.value === null) return `(${column} IS NULL AND r.id ${beyond} ${id})`;
  const value = `${conditions.bind(position.value)}::${type}`;
  const rest = query.sort_by === 'agent' ? ` OR ${column} IS NULL` : '';
  return `((${column}, r.id) ${beyond} (${value}, ${id})${rest})`;
}

const sortValueOf = (query: ListRunsQuery, row: RunRow): string | null =>
  query.sort_by === 'agent' ? row.skill_spec : row[query.sort_by];

/** One page of the team's runs. A run that does not change while pages are read is in exactly one of them. */
export async function listRuns(
  db: Queryable,
  signer: CursorSigner,
  context: ReadContext,
  query: ListRunsQuery,
): Promise<ListOutcome> {
  const { cursor, limit, ...list } = query;
  const identity = listIdentity([context.teamId, Object.entries(list).sort(([a], [b]) => (a < b ? -1 : 1))]);
  const conditions = startConditions(context.teamId);
  if (query.ancestor_run_id !== undefined && !(await findRun(db, context.teamId, query.ancestor_run_id))) {
    return { kind: 'invalid', faults: [{ path: 'ancestor_run_id', message: 'there is no such run' }] };
  }
  addFilters(conditions, query);
  if (cursor !== undefined) {
    const read = readCursor(signer, identity, cursor);
    if (!read.ok) {
      const message =
        read.reason === 'malformed'
          ? 'is not a cursor of this service'
          : 'belongs to another sort, order or filter; send the same query as for the page before';
      return { kind: 'invalid', faults: [{ path: 'cursor', message }] };
    }
    conditions.texts.push(afterPosition(conditions, query, read.position));
  }
  const { column } = sortKeys[query.sort_by];
  const direction = query.sort_order === 'asc' ? 'ASC' : 'DESC';
  const nulls = query.sort_by === 'agent' ? ' NULLS LAST' : '';
  const rows = await db.query<RunRow>(
    `${selectRuns} WHERE ${conditions.texts.join(' AND ')}
     ORDER BY ${column} ${direction}${nulls}, r.id ${direction} LIMIT ${conditions.bind(limit + 1)}`,
    conditions.values,
  );
  const page = rows.slice(0, limit);
  const last = page.at(-1);
  const hasNext = rows.length > limit && last !== undefined;
  return {
    kind: 'ok',
    page: {
      runs: await toRunItems(db, context, page),
      page_info: {
        has_next_page: hasNext,
        ...(hasNext
          ? { next_cursor: writeCursor(signer, identity, { value: sortValueOf(query, last), id: last.id }) }
          : {}),
      },
    },
  };
}
