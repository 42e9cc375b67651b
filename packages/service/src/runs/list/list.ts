import type { ListRunsQuery } from '@runyard/contract/run-list';
import type { ListRunsResponse } from '@runyard/contract/runs';
import type { Fault } from '../../fault.ts';
import type { Database, Queryable, Statement } from '../../store/database/database.ts';
import {
  type CursorPosition,
  type CursorSigner,
  listIdentity,
  readCursor,
  writeCursor,
} from '../../store/paging/cursor.ts';
import { findRun, fromRuns, type ReadContext, type RunRow, runColumns, toRunItems } from '../read/read.ts';
import { mergeQuery } from './merge.ts';
import { orderOf } from './order.ts';
import { foundPage, type PageQuery, type PageRequest, pageQuery, sortingQuery } from './query.ts';
import { type SearchTemplate, type SearchTier, templateOf, wordsOf } from './search.ts';
import { indexBeforeSearch } from './search-index.ts';
import { walkAlong, walksOf } from './walks.ts';
import { weeksQuery } from './weeks.ts';

/**
 * A page ends before prompts and configurations have more bytes: 500 runs may hold a gigabyte, which took the service's
 * memory. One run has 2 MB at most.
 */
const maxPageBytes = 16 * 1024 * 1024;

/** Of a run `r`. The length of a long text is read without it; that of a configuration only where it is stored in more than 1,000 bytes, compressed. */
const runBytes = `octet_length(r.prompt)
  + CASE WHEN pg_column_size(r.config) > 1000 THEN octet_length(r.config::text) ELSE pg_column_size(r.config) END`;

/** `invalid` 400, `not_available` 403 `feature_not_available`. */
export type ListOutcome =
  | { readonly kind: 'ok'; readonly page: ListRunsResponse }
  | { readonly kind: 'invalid'; readonly faults: Fault[] }
  | { readonly kind: 'not_available'; readonly detail: string };

interface PageKey {
  readonly id: string;
  readonly sort_value: string | null;
}
/** `found`: how many runs the statement found, those that the size of a page leaves out among them. */
type PageRow = RunRow & PageKey & { readonly found: number };

async function readRows(db: Queryable, request: PageRequest, { text, values }: PageQuery): Promise<PageRow[]> {
  const { collation, direction } = orderOf(request.query);
  const order = `page.sort_value${collation} ${direction} NULLS LAST, page.id ${direction}`;
  return await db.query<PageRow>(
    `WITH page AS MATERIALIZED (${text}), sized AS MATERIALIZED (
       SELECT page.id, page.sort_value, count(*) OVER () AS found,
         sum(${runBytes}) OVER (ORDER BY ${order} ROWS UNBOUNDED PRECEDING) AS bytes
       FROM page JOIN runs r ON r.id = page.id)
     SELECT ${runColumns}, page.sort_value, page.found::integer ${fromRuns}
     JOIN sized page ON page.id = r.id AND page.bytes <= ${maxPageBytes} ORDER BY ${order}`,
    values,
  );
}

/** How many runs a page's statement found. */
const foundBy = (rows: readonly PageRow[]): number => rows[0]?.found ?? 0;

/**
 * Reads by indexes only. PostgreSQL takes filters that are used together for independent, and knows nothing of what
 * a week's words find: where it expects many runs it would read a whole table, though the indexes say that there are few.
 */
async function byIndexes<T>(db: Database, work: (tx: Queryable) => Promise<T>, more = ''): Promise<T> {
  return await db.transaction(async (tx) => {
    // With less memory a bitmap of many runs forgets which rows of a page it means.
    await tx.query(
      `SET LOCAL enable_seqscan = off; SET LOCAL max_parallel_workers_per_gather = 0; SET LOCAL jit = off; SET LOCAL work_mem = '32MB'; ${more}`,
    );
    return await work(tx);
  });
}

/** Lists are merged in their order, so that a full page ends it. */
const inOrder = 'SET LOCAL enable_hashjoin = off';

/** By a walk, if one of them finds the page; else by all that matches. */
async function findPage(db: Database, request: PageRequest, search: SearchTemplate | null): Promise<PageRow[]> {
  const walks = walksOf(request.query, search);
  if (walks.length === 0 && search === null) return await readRows(db, request, pageQuery(request));
  for (const walk of walks) {
    const page = await walkAlong(db, request, walk, search);
    if (page) return await readRows(db, request, page);
  }
  const merge = search === null ? mergeQuery(request) : null;
  if (merge) {
    const found = await byIndexes(db, (tx) => tx.query<PageKey>(merge.text, merge.values), inOrder);
    const [ids, times] = [found.map((run) => run.id), found.map((run) => run.sort_value)];
    return await readRows(db, request, foundPage(request.query, ids, times));
  }
  const query = search === null ? sortingQuery(request) : weeksQuery(request, search);
  return await byIndexes(db, (tx) => readRows(tx, request, query));
}

/** The rows of a page, and by which tier its words were found. */
async function findRows(
  db: Database,
  request: PageRequest,
): Promise<{ readonly rows: PageRow[]; readonly tier: SearchTier }> {
  const words = wordsOf(request.query.q);
  if (words === null) return { rows: await findPage(db, request, null), tier: 'exact' };
  if (words.length === 0) return { rows: [], tier: 'exact' };
  await indexBeforeSearch(db);
  const search = async (tier: SearchTier) => ({ rows: await findPage(db, request, templateOf(words, tier)), tier });
  if (request.position?.isSimilar) return await search('similar');
  const exact = await search('exact');
  return exact.rows.length > 0 || request.position ? exact : await search('similar');
}

/** Why a cursor is not taken, or its position. */
function positionOf(signer: CursorSigner, identity: string, cursor: string | undefined): CursorPosition | null | Fault {
  if (cursor === undefined) return null;
  const read = readCursor(signer, identity, cursor);
  if (read.ok) return read.position;
  const message =
    read.reason === 'malformed'
      ? 'is not a cursor of this service'
      : 'belongs to another sort, order or filter; send the same query as for the page before';
  return { path: 'cursor', message };
}

const readMetadataFilters: Statement = {
  name: 'read_metadata_filters',
  text: 'SELECT metadata_filters_enabled AS enabled FROM teams WHERE id = $1',
};

/** One page of the team's runs. A run that does not change while pages are read is in exactly one of them. */
export async function listRuns(
  db: Database,
  signer: CursorSigner,
  context: ReadContext,
  query: ListRunsQuery,
): Promise<ListOutcome> {
  const { teamId } = context;
  const { cursor, limit, ...list } = query;
  if (query.metadata !== undefined) {
    const [team] = await db.query<{ enabled: boolean }>(readMetadataFilters, [teamId]);
    if (!team?.enabled) {
      return { kind: 'not_available', detail: 'Filtering by metadata is turned off for this team; leave it out.' };
    }
  }
  if (query.ancestor_run_id !== undefined && !(await findRun(db, teamId, query.ancestor_run_id))) {
    return { kind: 'invalid', faults: [{ path: 'ancestor_run_id', message: 'there is no such run' }] };
  }
  const identity = listIdentity([teamId, Object.entries(list).sort(([a], [b]) => (a < b ? -1 : 1))]);
  const position = positionOf(signer, identity, cursor);
  if (position && 'path' in position) return { kind: 'invalid', faults: [position] };
  const { rows, tier } = await findRows(db, { teamId, query, position, count: limit + 1 });
  const page = rows.slice(0, limit);
  const last = page.at(-1);
  const hasNext = foundBy(rows) > page.length && last !== undefined;
  const next = last && { value: last.sort_value, id: last.id, isSimilar: tier === 'similar' };
  return {
    kind: 'ok',
    page: {
      runs: await toRunItems(db, context, page),
      page_info: {
        has_next_page: hasNext,
        ...(hasNext && next ? { next_cursor: writeCursor(signer, identity, next) } : {}),
      },
    },
  };
}
