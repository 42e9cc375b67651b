/** The three ways in which a list finds a page: a walk along the order, a short list of the matching runs, and a scan of the table. */
import type { ListRunsQuery } from '@runyard/contract/runs/run-list';
import type { CursorPosition } from '../../../platform/store/cursor.ts';
import type { Queryable } from '../../../platform/store/database/database.ts';
import { conditionsOf, executing, listsOf, type Parameters, type RunList, startParameters } from './filters.ts';
import { isAfter, orderBy, orderOf } from './order.ts';
import { hasWords, listOfWords, type SearchTemplate } from './search-words.ts';

/** A requested page of a list. */
export interface PageRequest {
  readonly teamId: string;
  readonly query: ListRunsQuery;
  /** The position after which the page begins; null: the page begins with the first run. */
  readonly position: CursorPosition | null;
  /** Maximum number of rows to return. */
  readonly count: number;
  /** The words that the runs have; null: the query has no words. */
  readonly words: SearchTemplate | null;
}

/** A run of a page, and its place in the order. */
export interface PageKey {
  readonly id: string;
  readonly sort_value: string | null;
}

/** SQL: the ids of the team's runs in a sandbox, as an array. */
const sandboxed = `ARRAY(${executing('is_live')})`;

/** Maximum number of runs in a short list. */
export const maxListed = 2_000;

/** The columns of a run that conditions and orders read. */
const walkedColumns =
  'r.id, r.team_id, r.state, r.error_code, r.in_sandbox, r.created_at, r.updated_at, r.list_at, r.title, r.skill_spec, r.facets';

/** Forbids plans that read the whole table, or that read all rows of an index before the first one is returned. */
export const inOrder = 'SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off';
/**
 * Forbids plans that read the whole table. With less memory, PostgreSQL's bitmap of many runs lists only pages, and the query checks each
 * row of these pages again.
 */
export const byIndex = "SET LOCAL enable_seqscan = off; SET LOCAL work_mem = '32MB'";
/** Forbids plans that read the table in the order of an index, a page for each run. */
export const byPages =
  "SET LOCAL enable_indexscan = off; SET LOCAL enable_indexonlyscan = off; SET LOCAL max_parallel_workers_per_gather = 0; SET LOCAL work_mem = '32MB'";

interface FoundRow {
  readonly end?: string | null;
  readonly is_last?: boolean;
  readonly is_found: boolean;
  readonly ids: string[] | null;
  readonly keys: (string | null)[] | null;
}

/**
 * Runs a statement with a relation `page`, and returns its runs in their order; null if SQL `isFound` is false, because there may be others.
 * `more`: SQL of further columns.
 */
async function readKeys(db: Queryable, { values }: Parameters, relations: string, isFound: string, more?: string) {
  const columns = `${isFound} AS is_found, array_agg(id::text) AS ids, array_agg(sort_value::text) AS keys`;
  const [row] = await db.query<FoundRow>(
    `WITH ${relations} SELECT ${columns}${more === undefined ? '' : `, ${more}`} FROM page`,
    values,
  );
  const keys = (row?.ids ?? []).map((id, n): PageKey => ({ id, sort_value: row?.keys?.[n] ?? null }));
  return { keys: row?.is_found ? keys : null, row };
}

const wordsIn = ({ words }: PageRequest, parameters: Parameters): string[] =>
  words === null ? [] : [hasWords(parameters, words)];

/** The result of a walk that did not find the whole page. */
export interface Walked {
  /** The end of a wider walk: the sort value that `wideFactor` times as many runs would reach. null: the list is not sorted by a time. */
  readonly end: string | null;
  /** True: no run of the team comes after `end`. */
  readonly isLast: boolean;
}

/** Reads at most `most` runs in the order of the list, until the page is full. */
export async function walk(db: Queryable, request: PageRequest, most: number): Promise<PageKey[] | Walked> {
  if (!orderOf(request.query).isNullable) return await walkPart(db, request, most, false);
  const isAtEnd = request.position?.value === null;
  const keys = isAtEnd ? [] : await walkPart(db, request, most, false);
  if (!Array.isArray(keys) || keys.length === request.count) return keys;
  const position = isAtEnd ? request.position : null;
  const rest = await walkPart(db, { ...request, position, count: request.count - keys.length }, most, true);
  return Array.isArray(rest) ? [...keys, ...rest] : rest;
}

/** `isEmpty`: walks along the runs that have no value in the sort column, in the order of their ids. */
async function walkPart(
  db: Queryable,
  request: PageRequest,
  most: number,
  isEmpty: boolean,
): Promise<PageKey[] | Walked> {
  const parameters = startParameters(request.teamId);
  const { bounds, isHere, inSandbox, indexed, order } = walkedBy(request, parameters, isEmpty);
  const sort = `${isEmpty ? '' : `${indexed} ${order.direction}, `}r.id ${order.direction}`;
  const where = bounds.length === 0 ? '' : `WHERE ${bounds.join(' AND ')}`;
  const count = parameters.bind(request.count);
  // The first and the last run are read even if they do not match.
  const relations = `
    kept AS MATERIALIZED (
      SELECT r.id, ${indexed} AS sort_value, r.n, ${isHere} AS is_match FROM (
        SELECT ${walkedColumns}, row_number() OVER (ORDER BY ${sort}) AS n FROM runs r ${where} ORDER BY ${sort} LIMIT ${most}
      ) r WHERE r.n IN (1, ${most}) OR (${isHere}) ORDER BY ${sort} LIMIT ${count}::integer + 1
    ), page AS (
      SELECT id, sort_value FROM (SELECT id, sort_value FROM kept WHERE is_match ${inSandbox}) found ${orderBy(order)} LIMIT ${count})`;
  const isFound = `NOT EXISTS (SELECT FROM kept WHERE n = ${most}) OR (SELECT count(*) FROM kept WHERE is_match) >= ${count}`;
  const ends = (n: number) => `(SELECT sort_value FROM kept WHERE n = ${n})`;
  if (order.type !== 'timestamptz')
    return (await readKeys(db, parameters, relations, isFound)).keys ?? { end: null, isLast: false };
  const end = `(${ends(most)} + ${wideFactor - 1} * (${ends(most)} - ${ends(1)}))`;
  const isLast = `NOT EXISTS (SELECT FROM runs r WHERE ${[...bounds, `${indexed} ${order.beyond} ${end}`].join(' AND ')})`;
  const found = await readKeys(db, parameters, relations, isFound, `${end}::text AS end, ${isLast} AS is_last`);
  return found.keys ?? { end: found.row?.end ?? null, isLast: found.row?.is_last ?? false };
}

/** SQL for a walk along the order of a list. */
interface WalkedBy {
  readonly order: ReturnType<typeof orderOf>;
  readonly indexed: string;
  /** Conditions on the runs `r` that the walk reads. */
  readonly bounds: string[];
  /** Condition: the run `r` belongs to the list, and its place in the list is its place in the index. */
  readonly isHere: string;
  /** `UNION ALL` with a query for the runs in a sandbox, whose places in the list and in the index differ; '' if the walk needs none. */
  readonly inSandbox: string;
}

function walkedBy(request: PageRequest, parameters: Parameters, isEmpty = false): WalkedBy {
  const { query, position } = request;
  const { bind } = parameters;
  const order = orderOf(query);
  const { indexed, column, isNullable } = order;
  const isMatch = [...conditionsOf(query, parameters), ...wordsIn(request, parameters)].join(' AND ');
  const after = (of: string) => (position ? [isAfter({ ...order, isNullable: false }, of, position, bind)] : []);
  if (isEmpty) {
    const bounds = position ? [`r.id ${order.beyond} ${bind(position.id)}::uuid`] : [];
    return { order, indexed, bounds, isHere: `r.skill_spec IS NULL AND ${isMatch}`, inSandbox: '' };
  }
  const bounds = ['r.team_id = $1', ...after(indexed), ...(isNullable ? ['r.skill_spec IS NOT NULL'] : [])];
  const { created_after: later, created_before: earlier, updated_after: changed } = query;
  const isByChange = indexed !== column;
  // A run never changes before its creation, and its place in the list by change is never before its creation.
  const least = isByChange ? [later, changed] : query.sort_by === 'created_at' ? [later] : [];
  for (const time of least) if (time !== undefined) bounds.push(`${indexed} > ${bind(time)}::timestamptz`);
  if (query.sort_by === 'created_at' && earlier !== undefined)
    bounds.push(`${indexed} < ${bind(earlier)}::timestamptz`);
  if (!isByChange) return { order, indexed, bounds, isHere: isMatch, inSandbox: '' };
  return {
    order,
    indexed,
    bounds,
    isHere: `NOT (r.in_sandbox AND r.id = ANY(${sandboxed})) AND ${isMatch}`,
    inSandbox: `UNION ALL SELECT r.id, ${column} FROM runs r WHERE r.in_sandbox AND r.id = ANY(${sandboxed}) AND
      ${[isMatch, ...after(column)].join(' AND ')}`,
  };
}

/** A wide walk covers this many times the time of the walk before it. */
const wideFactor = 10;

/**
 * Reads the runs of a longer time than the walk before it, and sorts the runs that belong to the list. Reads each page of the table once,
 * and at most `most` runs. Returns null if it does not find the whole page.
 */
export async function walkWide(
  db: Queryable,
  request: PageRequest,
  { end, isLast }: Walked,
  most: number,
): Promise<PageKey[] | null> {
  const parameters = startParameters(request.teamId);
  const { bounds, isHere, inSandbox, indexed, order } = walkedBy(request, parameters);
  const isNear = `${indexed} ${order.direction === 'ASC' ? '<=' : '>='} ${parameters.bind(end)}::timestamptz`;
  const count = parameters.bind(request.count);
  const relations = `
    near AS MATERIALIZED (
      SELECT r.id, ${indexed} AS sort_value, ${isHere} AS is_match FROM runs r WHERE ${[...bounds, isNear].join(' AND ')} LIMIT ${most + 1}
    ), page AS (
      SELECT id, sort_value FROM (SELECT id, sort_value FROM near WHERE is_match ${inSandbox}) found ${orderBy(order)} LIMIT ${count})`;
  const isFull = isLast ? 'true' : `(SELECT count(*) FROM near WHERE is_match) >= ${count}`;
  return (await readKeys(db, parameters, relations, `(SELECT count(*) FROM near) <= ${most} AND ${isFull}`)).keys;
}

/** Reads all runs of the filters' lists and sorts them. Returns null if a list has more than `maxListed` runs, or no index has the runs. */
export async function readShortList(
  db: Queryable,
  request: PageRequest,
  of: 'filters' | 'words' | 'times',
): Promise<PageKey[] | null> {
  const { query, position, teamId, count } = request;
  const parameters = startParameters(teamId);
  const { bind } = parameters;
  const lists = listsFor(of, request, parameters);
  if (lists === null) return null;
  // PostgreSQL knows how frequent one value is, but not how often several occur together.
  const [only] = lists;
  if (only && 'where' in only && only.isOne && (await estimate(db, only.where, parameters)) > 1.5 * maxListed)
    return null;
  const order = orderOf(query);
  const isMatch = [
    ...conditionsOf(query, parameters),
    ...(position ? [isAfter(order, order.column, position, bind)] : []),
    ...(of === 'words' ? [] : wordsIn(request, parameters)),
  ].join(' AND ');
  const columns = `r.id, ${order.column} AS sort_value`;
  const limit = `LIMIT ${maxListed + 1}`;
  const relations = lists.map((list, n) =>
    'ids' in list
      ? `list${n} AS MATERIALIZED (SELECT run_id FROM (${list.ids}) l ${limit}), found${n} AS (
          SELECT ${columns} FROM runs r WHERE (SELECT count(*) FROM list${n}) <= ${maxListed}
            AND r.id = ANY(ARRAY(SELECT run_id FROM list${n})) AND ${isMatch})`
      : `list${n} AS MATERIALIZED (SELECT ${columns}, ${isMatch} AS is_match FROM runs r WHERE ${list.where.join(' AND ')} ${limit}),
        found${n} AS (SELECT id, sort_value FROM list${n} WHERE is_match)`,
  );
  const found =
    lists.map((_, n) => `SELECT * FROM found${n}`).join(' UNION ') ||
    'SELECT NULL::uuid AS id, NULL::text AS sort_value WHERE false';
  const page = `page AS (SELECT id, sort_value FROM (${found}) found ${orderBy(order)} LIMIT ${bind(count)})`;
  const areShort = lists.map((_, n) => `(SELECT count(*) FROM list${n}) <= ${maxListed}`).join(' AND ') || 'true';
  return (await readKeys(db, parameters, [...relations, page].join(', '), areShort)).keys;
}

/** Returns how many runs PostgreSQL expects, by its statistics. */
async function estimate(db: Queryable, where: readonly string[], { values }: Parameters): Promise<number> {
  const [row] = await db.query<{ 'QUERY PLAN': [{ Plan: { 'Plan Rows': number } }] }>(
    `EXPLAIN (FORMAT JSON) SELECT FROM runs r WHERE ${where.join(' AND ')}`,
    values,
  );
  return row?.['QUERY PLAN'][0].Plan['Plan Rows'] ?? 0;
}

function listsFor(
  of: 'filters' | 'words' | 'times',
  { query, words }: PageRequest,
  parameters: Parameters,
): RunList[] | null {
  if (of === 'words') return words === null ? null : [{ ids: listOfWords(parameters, words) }];
  if (of === 'filters') return listsOf(query, parameters);
  const { created_after: from, created_before: to } = query;
  if (from === undefined || to === undefined) return null;
  const times = [
    `r.created_at > ${parameters.bind(from)}::timestamptz`,
    `r.created_at < ${parameters.bind(to)}::timestamptz`,
  ];
  return [{ where: ['r.team_id = $1', ...times], isOne: true }];
}

/** Reads the whole table, which is narrow. Always finds the page, unless the statement takes longer than its limit. */
export async function scan(db: Queryable, request: PageRequest): Promise<PageKey[]> {
  const { query, position, teamId, count, words } = request;
  const parameters = startParameters(teamId);
  const order = orderOf(query);
  const texts = conditionsOf(query, parameters);
  if (words !== null) texts.push(`r.id = ANY(ARRAY(${listOfWords(parameters, words)}))`);
  if (position) texts.push(isAfter(order, order.column, position, parameters.bind));
  const page = `page AS (SELECT id, sort_value FROM (
    SELECT r.id, ${order.column} AS sort_value FROM runs r WHERE ${texts.join(' AND ')}) found ${orderBy(order)} LIMIT ${parameters.bind(count)})`;
  return (await readKeys(db, parameters, page, 'true')).keys ?? [];
}
