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
const inSandbox = `ARRAY(${executing('is_live')})`;

/** Most runs of a short list. */
export const maxListed = 2_000;

/** The columns of a run that conditions and orders read. */
const walkedColumns = 'r.id, r.team_id, r.state, r.error_code, r.in_sandbox, r.created_at, r.updated_at, r.list_at, r.title, r.skill_spec, r.facets';

/** Forbids plans that read the whole table, or that read all rows of an index before the first one is returned. */
export const inOrder = 'SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off';
/** Forbids plans that read the whole table. */
export const byIndex = 'SET LOCAL enable_seqscan = off; SET LOCAL enable_indexscan = on';
/** Forbids plans that read the table in the order of an index, one page for each run. */
export const byScan = 'SET LOCAL enable_indexscan = off; SET LOCAL enable_indexonlyscan = off';

interface FoundRow {
  readonly is_found: boolean;
  readonly ids: string[] | null;
  readonly keys: (string | null)[] | null;
}

/** Runs a statement with a relation `page`, and returns its runs in their order; null if SQL `isFound` is false: there may be others. */
async function readKeys(db: Queryable, { values }: Parameters, relations: string, isFound: string): Promise<PageKey[] | null> {
  const [row] = await db.query<FoundRow>(
    `WITH ${relations} SELECT ${isFound} AS is_found, array_agg(id::text) AS ids, array_agg(sort_value::text) AS keys FROM page`,
    values,
  );
  if (!row?.is_found) return null;
  return (row.ids ?? []).map((id, n) => ({ id, sort_value: row.keys?.[n] ?? null }));
}

const wordsIn = ({ words }: PageRequest, parameters: Parameters): string[] =>
  words === null ? [] : [hasWords(parameters, words)];

/** Reads at most `most` runs in the order of the list, until the page is full. */
export async function walk(db: Queryable, request: PageRequest, most: number): Promise<PageKey[] | null> {
  const { isNullable } = orderOf(request.query);
  if (!isNullable) return await walkPart(db, request, most, false);
  const keys = request.position?.value === null ? [] : await walkPart(db, request, most, false);
  if (keys === null || keys.length === request.count) return keys;
  const position = request.position?.value === null ? request.position : null;
  const rest = await walkPart(db, { ...request, position, count: request.count - keys.length }, most, true);
  return rest && [...keys, ...rest];
}

/** `isEmpty`: walks along the runs without a value in the column of the order, by id. */
async function walkPart(
  db: Queryable,
  request: PageRequest,
  most: number,
  isEmpty: boolean,
): Promise<PageKey[] | null> {
  const { query, position, teamId, count } = request;
  const parameters = startParameters(teamId);
  const { bind } = parameters;
  const order = orderOf(query);
  const { indexed, column, direction, isNullable } = order;
  const isByChange = indexed !== column;
  const isMatch = [...conditionsOf(query, parameters), ...wordsIn(request, parameters)].join(' AND ');
  const after = (of: string) => (position ? [isAfter({ ...order, isNullable: false }, of, position, bind)] : []);
  const bounds: string[] = isEmpty ? [] : ['r.team_id = $1', ...after(indexed)];
  if (isEmpty && position) bounds.push(`r.id ${order.beyond} ${bind(position.id)}::uuid`);
  if (isNullable && !isEmpty) bounds.push('r.skill_spec IS NOT NULL');
  const { created_after: later, created_before: earlier, updated_after: changed } = query;
  // A run never changes before its creation, and its place in the list by change is never before its creation.
  const least = isByChange ? [later, changed] : query.sort_by === 'created_at' ? [later] : [];
  for (const time of least) if (time !== undefined) bounds.push(`${indexed} > ${bind(time)}::timestamptz`);
  if (query.sort_by === 'created_at' && earlier !== undefined) bounds.push(`${indexed} < ${bind(earlier)}::timestamptz`);

  const sort = isEmpty ? `r.id ${direction}` : `${indexed} ${direction}, r.id ${direction}`;
  const isHere = isEmpty ? `r.skill_spec IS NULL AND ${isMatch}` : isByChange ? `NOT (r.in_sandbox AND r.id = ANY(${inSandbox})) AND ${isMatch}` : isMatch;
  const where = bounds.length === 0 ? '' : `WHERE ${bounds.join(' AND ')}`;
  // The last run of the walk is read even if it does not match: then there may be further runs.
  const relations = `
    kept AS MATERIALIZED (
      SELECT r.id, ${indexed} AS sort_value, r.n, ${isHere} AS is_match FROM (
        SELECT ${walkedColumns}, row_number() OVER (ORDER BY ${sort}) AS n FROM runs r ${where} ORDER BY ${sort} LIMIT ${most}
      ) r WHERE r.n = ${most} OR (${isHere}) ORDER BY r.n LIMIT ${bind(count)}
    ), ${isByChange ? `in_sandbox AS MATERIALIZED (
      SELECT r.id, ${column} AS sort_value FROM runs r WHERE r.in_sandbox AND r.id = ANY(${inSandbox}) AND ${[isMatch, ...after(column)].join(' AND ')}
    ), ` : ''}page AS (
      SELECT id, sort_value FROM (SELECT id, sort_value FROM kept WHERE is_match ${isByChange ? 'UNION ALL SELECT id, sort_value FROM in_sandbox' : ''}) found
      ${orderBy(order)} LIMIT ${bind(count)})`;
  const isFound = `NOT EXISTS (SELECT FROM kept WHERE n = ${most}) OR (SELECT count(*) FROM kept WHERE is_match) >= ${bind(count)}`;
  return await readKeys(db, parameters, relations, isFound);
}

/** Reads all runs of the filters' lists and sorts them. Returns null if a list has more than `maxListed` runs, or no index has the runs. */
export async function readShortList(db: Queryable, request: PageRequest, of: 'filters' | 'words' | 'times'): Promise<PageKey[] | null> {
  const { query, position, teamId, count } = request;
  const parameters = startParameters(teamId);
  const { bind } = parameters;
  const lists = listsFor(of, request, parameters);
  if (lists === null) return null;
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
  const found = lists.map((_, n) => `SELECT * FROM found${n}`).join(' UNION ') || 'SELECT NULL::uuid AS id, NULL::text AS sort_value WHERE false';
  const page = `page AS (SELECT id, sort_value FROM (${found}) found ${orderBy(order)} LIMIT ${bind(count)})`;
  const areShort = lists.map((_, n) => `(SELECT count(*) FROM list${n}) <= ${maxListed}`).join(' AND ') || 'true';
  return await readKeys(db, parameters, [...relations, page].join(', '), areShort);
}

function listsFor(of: 'filters' | 'words' | 'times', { query, words }: PageRequest, parameters: Parameters): RunList[] | null {
  if (of === 'words') return words === null ? null : [{ ids: listOfWords(parameters, words) }];
  if (of === 'filters') return listsOf(query, parameters);
  const { created_after: from, created_before: to } = query;
  if (from === undefined || to === undefined) return null;
  const times = [`r.created_at > ${parameters.bind(from)}::timestamptz`, `r.created_at < ${parameters.bind(to)}::timestamptz`];
  return [{ where: ['r.team_id = $1', ...times] }];
}

/** Reads the whole table, which is narrow. Always finds the page, unless the statement takes longer than its limit. */
export async function scan(db: Queryable, request: PageRequest): Promise<PageKey[]> {
  const { query, position, teamId, count, words } = request;
  const parameters = startParameters(teamId);
  const order = orderOf(query);
  const texts = conditionsOf(query, parameters);
  if (words !== null) texts.push(`r.id IN (${listOfWords(parameters, words)})`);
  if (position) texts.push(isAfter(order, order.column, position, parameters.bind));
  const page = `page AS (SELECT id, sort_value FROM (
    SELECT r.id, ${order.column} AS sort_value FROM runs r WHERE ${texts.join(' AND ')}) found ${orderBy(order)} LIMIT ${parameters.bind(count)})`;
  return (await readKeys(db, parameters, page, 'true')) ?? [];
}
