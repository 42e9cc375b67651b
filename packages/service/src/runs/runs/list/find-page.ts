import type { Database, Queryable } from '../../../platform/store/database/database.ts';
import { plannedByValues } from '../../../platform/store/database/planned-by-values.ts';
import { fromRuns, type RunRow, runColumns } from '../read/run-row.ts';
import { type SummaryRow, summaryColumns } from '../read/run-summaries.ts';
import { createdByChange } from './created-by-change.ts';
import { addColumnFilters, facetsOf, firstFacet, hasFacet, joinFacets } from './filters.ts';
import { intersectQuery } from './intersect-lists.ts';
import { orderBy, orderOf } from './order.ts';
import { foundPage, type PageQuery, type PageRequest, startConditions } from './page-query.ts';
import { mergeParts, partsOf } from './parts.ts';
import { probeList } from './probe-list.ts';
import { indexBeforeSearch } from './search-index.ts';
import {
  runIdIn,
  type SearchTemplate,
  type SearchTier,
  searchByWeekQuery,
  templateOf,
  wordsOf,
} from './search-words.ts';
import { type Strategy, strategiesFor } from './strategies.ts';
import { readShortList, walkList, walkMatches, walkSkills, walkSort } from './walk-sort.ts';

/**
 * Maximum number of bytes of prompts and configurations in a page. A page with only one run may have more. A run has at most 2 MB, so
 * without this limit 500 runs could have a gigabyte, which exhausts the memory of the service.
 */
const maxPageBytes = 16 * 1024 * 1024;

/**
 * SQL: size of the run `r` in bytes. PostgreSQL knows the length of a long text without reading the text. It reads a configuration only if
 * the compressed configuration has more than 1,000 bytes.
 */
const runBytes = `octet_length(r.prompt)
  + CASE WHEN pg_column_size(r.config) > 1000 THEN octet_length(r.config::text) ELSE pg_column_size(r.config) END`;

/** Names a run of a page, and its position in the order. */
interface PageKey {
  id: string;
  readonly sort_value: string | null;
}
/** A run of a page, with the columns of a view. */
export type PageRow<Row> = Row &
  PageKey & {
    /** Number of runs that the query found, including runs that do not fit into the page. */
    readonly found: number;
  };

/** Reads, for the runs that a query finds, the data that the caller needs. Returns no rows if the query finds no runs. */
export type ReadPage<T> = (db: Queryable, request: PageRequest, page: PageQuery) => Promise<T[]>;

/** Returns SQL for the order of a page. */
const pageOrder = ({ query }: PageRequest): string => {
  const { collation, direction } = orderOf(query);
  return `page.sort_value${collation} ${direction} NULLS LAST, page.id ${direction}`;
};

/** Reads whole items of runs, up to the maximum size of a page. */
export const readItems: ReadPage<PageRow<RunRow>> = async (db, request, { text, values }) => {
  const order = pageOrder(request);
  return await db.query(
    `WITH page AS MATERIALIZED (${text}), sized AS MATERIALIZED (
       SELECT page.id, page.sort_value, count(*) OVER () AS found,
         sum(${runBytes}) OVER (ORDER BY ${order} ROWS UNBOUNDED PRECEDING) AS bytes
       FROM page JOIN runs r ON r.id = page.id)
     SELECT ${runColumns}, page.sort_value, page.found::integer ${fromRuns}
     JOIN sized page ON page.id = r.id AND page.bytes <= ${maxPageBytes} ORDER BY ${order}`,
    values,
  );
};

/** Reads summaries. */
export const readSummaries: ReadPage<PageRow<SummaryRow>> = async (db, request, { text, values }) =>
  await db.query(
    `WITH page AS MATERIALIZED (${text})
     SELECT ${summaryColumns}, page.sort_value, (SELECT count(*) FROM page)::integer AS found ${fromRuns}
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
 */
export async function findPage<T>(db: Database, request: PageRequest, read: ReadPage<T>): Promise<FoundPage<T>> {
  const runId = runIdIn(request.query.q);
  if (runId !== undefined && !request.position) {
    const rows = await byIndexes(db, (tx) => read(tx, request, sortMatchesQuery(request, runId)));
    if (rows.length > 0) return { rows, tier: 'exact' };
  }
  const words = wordsOf(request.query.q);
  if (words === null) return { rows: await tryStrategies(db, request, null, read), tier: 'exact' };
  if (words.length === 0) return { rows: [], tier: 'exact' };
  await indexBeforeSearch(db);
  const search = async (tier: SearchTier) => ({
    rows: await tryStrategies(db, request, templateOf(words, tier), read),
    tier,
  });
  if (request.position?.isSimilar) return await search('similar');
  const exact = await search('exact');
  return exact.rows.length > 0 || request.position ? exact : await search('similar');
}

/** `search` is null if the query has no words. */
async function tryStrategies<T>(
  db: Database,
  request: PageRequest,
  search: SearchTemplate | null,
  read: ReadPage<T>,
): Promise<T[]> {
  for (const strategy of strategiesFor(request.query, search !== null)) {
    const rows = await tryStrategy(db, request, search, strategy, read);
    if (rows) return rows;
  }
  throw new Error('no strategy found the page of a list');
}

/** null means that the strategy could not find the page. */
async function tryStrategy<T>(
  db: Database,
  request: PageRequest,
  search: SearchTemplate | null,
  strategy: Strategy,
  read: ReadPage<T>,
): Promise<T[] | null> {
  const ofIndexes = (find: (tx: Queryable) => Promise<PageQuery | null>) =>
    byIndexes(db, async (tx) => {
      const page = await find(tx);
      return page && (await read(tx, request, page));
    });
  switch (strategy.kind) {
    case 'read_in_order':
      return await plannedByValues(db, (tx) => read(tx, request, inOrderQuery(request)));
    case 'probe_list':
      return await plannedByValues(db, async (tx) => {
        const page = await probeList(tx, request, strategy, search);
        return page && (await read(tx, request, page));
      });
    case 'short_list':
      return await ofIndexes((tx) => readShortList(tx, request, strategy.length, search));
    case 'walk_sort':
      return await ofIndexes((tx) => walkSort(tx, request, strategy.length, search));
    case 'walk_list':
      return await ofIndexes((tx) => walkList(tx, request, strategy, search));
    case 'walk_skills':
      return await ofIndexes((tx) => walkSkills(tx, request, strategy.length, search));
    case 'created_by_change':
      return await ofIndexes((tx) => createdByChange(tx, request, strategy, search));
    case 'walk_matches':
      return await ofIndexes((tx) => walkMatches(tx, request, search, strategy.longest));
    case 'intersect_lists': {
      const { text, values } = intersectQuery(request);
      const keys = await byIndexes(db, (tx) => tx.query<PageKey>(text, values), mergeJoins);
      const [ids, sortValues] = [keys.map(({ id }) => id), keys.map(({ sort_value }) => sort_value)];
      return await plannedByValues(db, (tx) => read(tx, request, foundPage(request.query, ids, sortValues)));
    }
    case 'sort_matches':
      return await byIndexes(db, (tx) => read(tx, request, sortMatchesQuery(request)));
    case 'search_by_week':
      if (search === null) return null;
      return await byIndexes(db, (tx) => read(tx, request, searchByWeekQuery(request, search)));
  }
}

/**
 * Forbids scans of the whole table during `work`. PostgreSQL estimates filters as if they were independent, and cannot estimate searches.
 * So it may expect many runs and scan the whole table, although few runs match and the indexes can find them.
 */
async function byIndexes<T>(db: Database, work: (tx: Queryable) => Promise<T>, more = ''): Promise<T> {
  // Use more work_mem. With less, a bitmap of many runs contains only pages of the table, and PostgreSQL checks each row of these pages
  // again.
  const settings = `SET LOCAL enable_seqscan = off; SET LOCAL max_parallel_workers_per_gather = 0; SET LOCAL work_mem = '32MB'; ${more}`;
  return await plannedByValues(db, work, settings);
}

/** Forces merge joins, because they end as soon as the page is full. */
const mergeJoins = 'SET LOCAL enable_hashjoin = off';

/**
 * Last strategy: reads all runs that match the filters, and sorts them. The number of rows that it reads grows with the number of matching
 * runs. `runId`: only this run may match.
 */
export function sortMatchesQuery({ teamId, query, position, count }: PageRequest, runId?: string): PageQuery {
  const conditions = startConditions(teamId);
  const order = orderOf(query);
  joinFacets(conditions, query);
  addColumnFilters(conditions, query);
  if (runId !== undefined) conditions.texts.push(`r.id = ${conditions.bind(runId)}::uuid`);
  const parts = partsOf(conditions, query, order, position, null).map((part) => part.join(' AND ') || 'true');
  const text = `WITH found AS MATERIALIZED (
      SELECT r.id, ${order.column} AS sort_value FROM runs r ${conditions.joins.join(' ')}
      WHERE ${conditions.texts.join(' AND ')} AND (${parts.join(' OR ')})
    ) SELECT id, sort_value FROM found ${orderBy(order, '')} LIMIT ${conditions.bind(count)}`;
  return { text, values: conditions.values };
}

/**
 * Strategy for at most one filter: reads the page from an index that contains the runs of the filter in the order of the page. The number
 * of rows that the strategy reads does not grow with the number of runs.
 */
function inOrderQuery({ teamId, query, position, count }: PageRequest): PageQuery {
  const conditions = startConditions(teamId);
  const order = orderOf(query);
  const facets = facetsOf(query);
  const facetHour = joinFacets(conditions, query);
  addColumnFilters(conditions, query);
  const hour = query.sort_by === 'updated_at' ? facetHour : null;
  const several = facets.find((facet) => facet.length > 1) ?? [];
  // Make a part for each facet, because the index has a separate order for each facet.
  const ofFacets = several.map((facet) => hasFacet(conditions, firstFacet, [facet]));
  const parts = partsOf(conditions, query, order, position, hour).flatMap((part) =>
    ofFacets.length === 0 || hour === null ? [part] : ofFacets.map((ofFacet) => [ofFacet, ...part]),
  );
  const limit = conditions.bind(count);
  return { text: mergeParts(conditions, order, parts, hour, limit), values: conditions.values };
}
