import { type ListRunsQuery, RunFilters } from '@runyard/contract/runs/run-list';
import type { ListRunsResponse, RunItem } from '@runyard/contract/runs/runs';
import type { Fault } from '../../../platform/fault.ts';
import {
  type CursorPosition,
  type CursorSigner,
  listIdentity,
  readCursor,
  writeCursor,
} from '../../../platform/store/cursor.ts';
import type { Database } from '../../../platform/store/database/database.ts';
import { boolean, defineStatement } from '../../../platform/store/database/statement.ts';
import { findRun } from '../read/read.ts';
import { type ReadContext, toRunItems } from '../read/run-items.ts';
import { toRunSummaries } from '../read/run-summaries.ts';
import { findPage, type PageRow, type ReadPage, readItems, readSummaries } from './find-page.ts';
import { ListTooSlow } from './slow-lists.ts';

/**
 * The reason why the service cannot list runs with these filters. `invalid`: 400; `not_available`: 403 with the code
 * `feature_not_available`.
 */
export type ListRefusal =
  | { readonly kind: 'invalid'; readonly faults: Fault[] }
  | { readonly kind: 'not_available'; readonly detail: string };

export type ListOutcome = { readonly kind: 'ok'; readonly page: ListRunsResponse } | ListRefusal;

/**
 * Returns the position of the cursor, null if there is no cursor, or the reason why the cursor is invalid. `query`: the members of the query
 * that the cursor belongs to.
 */
function positionOf(
  signer: CursorSigner,
  identity: string,
  cursor: string | undefined,
  query: readonly unknown[],
): CursorPosition | null | Fault {
  if (cursor === undefined) return null;
  const position = readCursor(signer, identity, cursor);
  if (position.ok) return position.position;
  const isEarlier = readCursor(signer, listIdentity(query), cursor).ok;
  const message =
    position.reason === 'malformed'
      ? 'is not a cursor of this service'
      : isEarlier
        ? 'is of an earlier version of the service; begin again with the first page'
        : 'belongs to another sort, order or filter; send the same query as for the previous page';
  return { path: 'cursor', message };
}

/** Part of the identity of each list. Another number makes cursors of earlier versions invalid. */
const cursorVersion = 2;

/**
 * Returns what `find` finds. If it takes too long, or if the team has too many slow lists at once, returns the reason to refuse the query, which
 * names its first filter.
 */
export async function findOrRefuse<T>(query: ListRunsQuery, find: () => Promise<T>): Promise<T | ListRefusal> {
  try {
    return await find();
  } catch (error) {
    if (!(error instanceof ListTooSlow)) throw error;
    const path = filterNames.find((name) => query[name] !== undefined) ?? 'sort_by';
    const message = 'matches too few of the latest runs to list them in time; add created_after with a later time';
    return { kind: 'invalid', faults: [{ path, message }] };
  }
}

const filterNames = Object.keys(RunFilters.shape) as (keyof RunFilters)[];

const readMetadataFilters = defineStatement({
  name: 'read_metadata_filters',
  text: 'SELECT metadata_filters_enabled AS enabled FROM teams WHERE id = $1',
  row: { enabled: boolean },
});

/** Returns the reason why the team may not list runs with these filters; null if it may. */
export async function refuseFilters(
  db: Database,
  teamId: string,
  { metadata, ancestor_run_id: ancestor }: RunFilters,
): Promise<ListRefusal | null> {
  if (metadata !== undefined) {
    const [team] = await db.query(readMetadataFilters, [teamId]);
    if (!team?.enabled) {
      return { kind: 'not_available', detail: 'Filtering by metadata is turned off for this team; leave it out.' };
    }
  }
  if (ancestor !== undefined && !(await findRun(db, teamId, ancestor))) {
    return { kind: 'invalid', faults: [{ path: 'ancestor_run_id', message: 'there is no such run' }] };
  }
  return null;
}

/** Reads one page of the team's runs. A run that does not change while a client reads the pages is in exactly one of them. */
export async function listRuns(
  db: Database,
  signer: CursorSigner,
  context: ReadContext,
  query: ListRunsQuery,
): Promise<ListOutcome> {
  const { teamId } = context;
  const { cursor, limit, view, ...list } = query;
  const refusal = await refuseFilters(db, teamId, query);
  if (refusal) return refusal;
  const parts = [teamId, Object.entries(list).sort(([a], [b]) => (a < b ? -1 : 1))];
  const identity = listIdentity([cursorVersion, ...parts]);
  const position = positionOf(signer, identity, cursor, parts);
  if (position && 'path' in position) return { kind: 'invalid', faults: [position] };
  const request = { teamId, query, position, count: limit + 1 };
  return view === 'summary'
    ? toPage(readSummaries, (rows) => toRunSummaries(db, context, rows))
    : toPage(readItems, (rows) => toRunItems(db, context, rows));

  async function toPage<Row>(
    read: ReadPage<PageRow<Row>>,
    toItems: (rows: readonly Row[]) => Promise<RunItem[]>,
  ): Promise<ListOutcome> {
    const found = await findOrRefuse(query, () => findPage(db, request, read));
    if ('kind' in found) return found;
    const { rows, tier } = found;
    const page = rows.slice(0, limit);
    const last = page.at(-1);
    const matches = rows[0]?.found ?? 0;
    const hasNext = matches > page.length && last !== undefined;
    const next = last && { value: last.sort_value, id: last.id, isSimilar: tier === 'similar' };
    const cursorOfNext = hasNext && next ? { next_cursor: writeCursor(signer, identity, next) } : {};
    return {
      kind: 'ok',
      page: { runs: await toItems(page), page_info: { has_next_page: hasNext, ...cursorOfNext } },
    };
  }
}
