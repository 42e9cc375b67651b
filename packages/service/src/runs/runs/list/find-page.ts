import type { Database, Queryable } from '../../../platform/store/database/database.ts';
import { plannedByValues } from '../../../platform/store/database/planned-by-values.ts';
import { fromRuns, itemSelect, type RunRow } from '../read/run-row.ts';
import { type SummaryRow, summarySelect } from '../read/run-summaries.ts';
import { isOnlyOpen } from './filters.ts';
import { orderBy, orderOf } from './order.ts';
import { indexBeforeSearch } from './search-index.ts';
import { runIdIn, type SearchTemplate, type SearchTier, templateOf, wordsOf } from './search-words.ts';
import { whileFewAreSlow, withinLimit } from './slow-lists.ts';
import {
  byIndex,
  byPages,
  inOrder,
  type PageKey,
  type PageRequest,
  readShortList,
  scan,
  walk,
  walkWide,
} from './strategies.ts';

/**
 * Maximum number of bytes of prompts and configurations in a page. A page with only one run may have more. A run has at most 2 MB, so
 * without this limit 500 runs could have a gigabyte, which exhausts the memory of the service.
 */
const maxPageBytes = 16 * 1024 * 1024;

/**
 * SQL: size of the request `q` of a run in bytes. PostgreSQL knows the length of a long text without reading the text. It reads a configuration only if
 * the compressed configuration has more than 1,000 bytes.
 */
const runBytes = `octet_length(q.prompt)
  + CASE WHEN pg_column_size(q.config) > 1000 THEN octet_length(q.config::text) ELSE pg_column_size(q.config) END`;

/** A run of a page, with the columns of a view. */
export type PageRow<Row> = Row &
  PageKey & {
    /** Number of runs that the query found, including runs that do not fit into the page. */
    readonly found: number;
  };

/** A statement that returns the columns `id` and `sort_value` of the runs of a page, in order. */
export interface PageQuery {
  readonly text: string;
  readonly values: readonly unknown[];
}

/** Reads, for the runs that a query finds, the data that the caller needs. Returns no rows if the query finds no runs. */
export type ReadPage<T> = (db: Queryable, request: PageWanted, page: PageQuery) => Promise<T[]>;

/** A requested page, whose words are in the query. */
export type PageWanted = Omit<PageRequest, 'words'>;

/** Returns SQL for the order of a page. */
const pageOrder = ({ query }: PageWanted): string => orderBy(orderOf(query), 'page.').slice('ORDER BY '.length);

/** Reads whole items of runs, up to the maximum size of a page. */
export const readItems: ReadPage<PageRow<RunRow>> = async (db, request, { text, values }) => {
  const order = pageOrder(request);
  return await db.query(
    `WITH page AS MATERIALIZED (${text}), sized AS MATERIALIZED (
       SELECT page.id, page.sort_value, count(*) OVER () AS found,
         sum(${runBytes}) OVER (ORDER BY ${order} ROWS UNBOUNDED PRECEDING) AS bytes
       FROM page JOIN run_requests q ON q.run_id = page.id)
     SELECT ${itemSelect}, page.sort_value, page.found::integer ${fromRuns}
     JOIN sized page ON page.id = r.id AND page.bytes <= ${maxPageBytes} ORDER BY ${order}`,
    values,
  );
};

export const readSummaries: ReadPage<PageRow<SummaryRow>> = async (db, request, { text, values }) =>
  await db.query(
    `WITH page AS MATERIALIZED (${text})
     SELECT ${summarySelect}, page.sort_value, (SELECT count(*) FROM page)::integer AS found ${fromRuns}
     JOIN page ON page.id = r.id ORDER BY ${pageOrder(request)}`,
    values,
  );

/** The rows of a page, and the way in which the words of `q` were compared. */
export interface FoundPage<T> {
  readonly rows: T[];
  readonly tier: SearchTier;
}

/**
 * Finds a page. If `q` is the id of a run, finds this run; otherwise searches for the words of `q`. Compares words exactly; if this finds
 * nothing, compares them by similarity. The cursor of a page stores how the first page was found, so the next pages use the same way.
 * Throws `ListTooSlow`.
 */
export async function findPage<T>(db: Database, wanted: PageWanted, read: ReadPage<T>): Promise<FoundPage<T>> {
  const { query, position } = wanted;
  const find = async (words: SearchTemplate | null, only = query) => {
    const keys = await findKeys(db, { ...wanted, query: only, words });
    const text = `SELECT id, sort_value FROM unnest($1::uuid[], $2::${orderOf(query).type}[]) page(id, sort_value)`;
    const values = [keys.map(({ id }) => id), keys.map(({ sort_value }) => sort_value)];
    return await plannedByValues(db, (tx) => read(tx, wanted, { text, values }));
  };
  const runId = runIdIn(query.q);
  if (runId !== undefined && !position && (query.run_id?.includes(runId) ?? true)) {
    const rows = await find(null, { ...query, run_id: [runId] });
    if (rows.length > 0) return { rows, tier: 'exact' };
  }
  const words = wordsOf(query.q);
  if (words === null) return { rows: await find(null), tier: 'exact' };
  if (words.length === 0) return { rows: [], tier: 'exact' };
  await indexBeforeSearch(db);
  const search = async (tier: SearchTier) => ({ rows: await find(templateOf(words, tier)), tier });
  if (position?.isSimilar) return await search('similar');
  const exact = await search('exact');
  return exact.rows.length > 0 || position ? exact : await search('similar');
}

/** Maximum number of runs that a walk reads, by the sort of the list. */
const maxWalked = { updated_at: 1_000, created_at: 1_000, title: 2_000, agent: 1_000 };
/** Maximum for a search for words. It is lower, because the walk reads the words of each run from another table. */
const maxWalkedForWords = 500;
/** Maximum number of runs that a wide walk reads. */
const maxWalkedWide = 15_000;

/** Finds the runs of a page by the first strategy that finds all of them. */
async function findKeys(db: Database, request: PageRequest): Promise<PageKey[]> {
  const { query, words, count } = request;
  const list = (of: 'filters' | 'words' | 'times') => withinLimit(db, (tx) => readShortList(tx, request, of), byIndex);
  const walkAlong = async () => {
    // Read more runs than the page has, because runs in a sandbox have another place in the list than in the index.
    const most = Math.max(words === null ? maxWalked[query.sort_by] : maxWalkedForWords, 2 * count);
    const walked = await withinLimit(db, (tx) => walk(tx, request, most), inOrder);
    if (Array.isArray(walked)) return walked;
    if (walked.end === null || words !== null || most > maxWalkedWide / 5) return null;
    return await withinLimit(
      db,
      (tx) => walkWide(tx, request, walked, maxWalkedWide),
      `SET LOCAL enable_seqscan = off; ${byPages}`,
    );
  };
  const keys =
    (query.run_id !== undefined || isOnlyOpen(query) ? await list('filters') : null) ??
    (words === null ? null : await list('words')) ??
    (await walkAlong()) ??
    (await list('filters')) ??
    (await list('times'));
  return keys ?? (await whileFewAreSlow(db, request.teamId, (tx) => scan(tx, request)));
}
