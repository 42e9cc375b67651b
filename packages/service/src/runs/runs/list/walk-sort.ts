/**
 * Strategies for pages that are not sorted by last change. For each filter, an index gives a list of the ids of its runs, but not in
 * the order of these pages.
 */
import type { Queryable } from '../../../platform/store/database/database.ts';
import { addColumnFilters, changedAfter, facetsOf, hasFacet } from './filters.ts';
import { idListsOf, listsBySize } from './id-lists.ts';
import { type ListOrder, orderBy, orderOf } from './order.ts';
import {
  type Conditions,
  onlyFilter,
  type PageQuery,
  type PageRequest,
  readFound,
  startConditions,
} from './page-query.ts';
import { addAlternatives, alternativesOf, partsOf } from './parts.ts';
import { foundByWords, matchOf, type SearchTemplate } from './search-words.ts';

/**
 * `sorted`: largest number of matches that are read and sorted. `walked`: largest number of matches whose ids are compared with the index
 * of the sort.
 */
const maxMatches = { sorted: 2_000, walked: 200_000 };

/** Returns SQL that selects those runs of the relation `of` that have all facets and match the words. */
function joinChecks(conditions: Conditions, { query }: PageRequest, of: string, search: SearchTemplate | null): string {
  const checks = facetsOf(query).map(
    (facet) => `SELECT FROM run_facets f WHERE f.run_id = ${of}.id AND ${hasFacet(conditions, 'f', facet)}`,
  );
  if (search !== null) {
    checks.push(`SELECT FROM run_search s WHERE s.run_id = ${of}.id AND ${matchOf(conditions, search)}`);
  }
  return checks.map((check, index) => `CROSS JOIN LATERAL (${check} OFFSET 0) c${index}`).join(' ');
}

/**
 * Returns SQL that joins the run `r` (id, sort_value) of each id in `of`, if the run matches the whole query and comes after the position.
 */
export function joinMatching(
  conditions: Conditions,
  request: PageRequest,
  of: string,
  search: SearchTemplate | null,
): string {
  const { query, position } = request;
  const order = orderOf(query);
  const own = { ...conditions, joins: [], texts: [`r.id = ${of}.id`, 'r.team_id = $1'] };
  addColumnFilters(own, query);
  const parts = partsOf(own, query, order, position, null).map((part) => part.join(' AND ') || 'true');
  return `CROSS JOIN LATERAL (SELECT r.id, ${order.column} AS sort_value FROM runs r
      WHERE ${own.texts.join(' AND ')} AND (${parts.join(' OR ')}) OFFSET 0) r ${joinChecks(conditions, request, of, search)}`;
}

/**
 * Strategy for a filter with few runs: reads the runs of the first list that has at most `length` runs. Returns null if every list has
 * more runs.
 */
export async function readShortList(
  db: Queryable,
  request: PageRequest,
  length: number,
  search: SearchTemplate | null,
): Promise<PageQuery | null> {
  const conditions = startConditions(request.teamId);
  const { bind } = conditions;
  const most = bind(length);
  const lists = idListsOf(request.query).map((list) => list(conditions));
  const isShort = lists.map((_, n) => `(SELECT count(*) FROM l${n}) <= ${most}`);
  const first = lists.map((_, n) => {
    const longer = isShort.slice(0, n).map((is) => ` AND NOT ${is}`);
    return `SELECT id FROM l${n} WHERE ${isShort[n]}${longer.join('')}`;
  });
  const relations = [
    ...lists.map((list, n) => `l${n} AS MATERIALIZED (SELECT id FROM (${list}) l LIMIT ${most} + 1)`),
    `first AS MATERIALIZED (${first.join(' UNION ALL ')})`,
    `page AS (SELECT r.id, r.sort_value FROM first ${joinMatching(conditions, request, 'first', search)}
      ${orderBy(orderOf(request.query), 'r.')} LIMIT ${bind(request.count)})`,
  ];
  return await readFound(db, request, conditions, relations, isShort.join(' OR '));
}

/**
 * Strategy for filters that match many runs: reads up to `length` runs in the order of the sort until the matching runs fill the page.
 * Returns null if the page is not full.
 */
export async function walkSort(
  db: Queryable,
  request: PageRequest,
  length: number,
  search: SearchTemplate | null,
): Promise<PageQuery | null> {
  const conditions = startConditions(request.teamId);
  const { bind } = conditions;
  const [most, count] = [bind(length), bind(request.count)];
  const order = orderOf(request.query);
  const own = { ...conditions, joins: [], texts: [] as string[] };
  addColumnFilters(own, request.query);
  addAlternatives(own, alternativesOf(own, request.query));
  const checks = joinChecks(conditions, request, 'r', search);
  const parts = sortParts(conditions, request).map((part) => ({
    text: `SELECT r.id, r.sort_value FROM (
        SELECT r.*, ${order.column} AS sort_value FROM runs r WHERE ${part} ${inOrder(order)} LIMIT ${most}) r ${checks}
      WHERE ${[...own.texts, 'true'].join(' AND ')}`,
    order: inPart(order, 'r.'),
    hasEnded: `NOT EXISTS (SELECT FROM runs r WHERE ${part} ${inOrder(order)} OFFSET ${most} LIMIT 1)`,
  }));
  return await readFound(db, request, conditions, pageOf(parts, order, count), isFull(parts, count));
}

/**
 * Strategy for a filter that matches neither few nor many runs: goes through the index of the sort key, and reads up to `length` runs whose
 * ids are in the shortest list, until the matching runs fill the page. Returns null if the page is not full, or if every list is too long.
 */
export async function walkList(
  db: Queryable,
  request: PageRequest,
  { length, longest }: { readonly length: number; readonly longest: number },
  search: SearchTemplate | null,
): Promise<PageQuery | null> {
  const conditions = startConditions(request.teamId);
  const { bind } = conditions;
  const order = orderOf(request.query);
  const [shortest] = await listsBySize(db, request, longest);
  if (shortest === undefined) return null;
  const [most, count, walked] = [bind(length), bind(request.count), bind(longest)];
  const joinRun = joinMatching(conditions, request, 'm', search);
  const parts = sortParts(conditions, request).map((part) => {
    const walk = `FROM runs r WHERE ${part} AND (r.id IN (SELECT id FROM matches)) IS TRUE ${inOrder(order)}`;
    return {
      text: `SELECT m.id, m.sort_value FROM (SELECT r.id, ${order.column} AS sort_value ${walk} LIMIT ${most}) m ${joinRun}
        WHERE (SELECT n FROM size) <= ${walked}`,
      order: inPart(order, 'm.'),
      hasEnded: `NOT EXISTS (SELECT ${walk} OFFSET ${most} LIMIT 1)`,
    };
  });
  const relations = [
    `matches AS MATERIALIZED (${shortest(conditions)} LIMIT ${walked} + 1)`,
    'size AS MATERIALIZED (SELECT count(*) AS n FROM matches)',
    ...pageOf(parts, order, count),
  ];
  return await readFound(
    db,
    request,
    conditions,
    relations,
    `(SELECT n FROM size) <= ${walked} AND ${isFull(parts, count)}`,
  );
}

/**
 * Strategy for a query with a range of times that is sorted by skill: reads the index `runs_by_skill`, which has the last change of the
 * runs of each skill. It skips runs outside the times, and reads up to `length` others. Returns null if the page is not full, or if the
 * query has no times.
 */
export async function walkSkills(
  db: Queryable,
  request: PageRequest,
  length: number,
  search: SearchTemplate | null,
): Promise<PageQuery | null> {
  const { query, position } = request;
  const conditions = startConditions(request.teamId);
  const { bind } = conditions;
  const order = orderOf(query);
  const changed = changedAfter(conditions, query).map((time) => `AND r.updated_at > ${time}`);
  if (changed.length === 0 || position?.value === null) return null;
  const [most, count] = [bind(length), bind(request.count)];
  const { column, direction } = order;
  const [part = 'true'] = sortParts(conditions, request);
  const select = {
    // The subquery has the order of the index. So PostgreSQL sorts the runs of one skill after another, and reads no row of `runs`.
    text: `SELECT m.id, m.sort_value FROM (
        SELECT k.id, k.sort_value FROM (
          SELECT r.id, ${column} AS sort_value FROM runs r WHERE ${part} AND r.skill_spec IS NOT NULL ${changed.join(' ')}
          ORDER BY ${column} ${direction}, r.updated_at ${direction}, r.id ${direction} OFFSET 0) k
        ${inPart(order, 'k.')} LIMIT ${most}) m ${joinMatching(conditions, request, 'm', search)} WHERE true`,
    order: inPart(order, 'm.'),
  };
  const relations = pageOf([select], order, count);
  // Forbids a sort of the runs of all skills together, but still allows a sort of the runs of one skill.
  await db.query('SET LOCAL enable_sort = off');
  return await readFound(db, request, conditions, relations, `(SELECT count(*) FROM page) = ${count}`);
}

/**
 * Strategy for filters for which no other strategy of this file fits: intersects the lists of the filters, and reads only indexes for
 * this. If the intersection has few runs, reads and sorts them. If it has many, reads the runs in the order of the sort key until runs of
 * the intersection fill the page. Returns null if the intersection is too large, or if a list has more than `longest` runs.
 */
export async function walkMatches(
  db: Queryable,
  request: PageRequest,
  search: SearchTemplate | null,
  longest?: number,
  most = maxMatches,
): Promise<PageQuery | null> {
  const conditions = startConditions(request.teamId);
  const { bind } = conditions;
  const { query } = request;
  const [count, sorted, walked] = [bind(request.count), bind(most.sorted), bind(most.walked)];
  const order = orderOf(query);
  const lists = idListsOf(query).map((list) => list(conditions));
  if (lists.length > 0) {
    const short = await listsBySize(db, request, longest ?? most.walked);
    if (short.length < (longest === undefined ? 1 : lists.length)) return null;
  }
  if (search !== null) lists.push(foundByWords(conditions, query, search));
  if (lists.length < 2 && search === null && most === maxMatches) return null;
  // OFFSET 0 prevents PostgreSQL from combining lists of the same table into one scan, which would read the runs.
  const [first, ...others] = lists.map((list, n) => `(${list} OFFSET 0) l${n}`);
  const joinRun = joinMatching(conditions, request, 'm', search);
  const found = '(SELECT n FROM size)';
  const walks = sortParts(conditions, request).map((part) => ({
    text: `SELECT m.id, m.sort_value FROM (
        SELECT r.id, ${order.column} AS sort_value FROM runs r
        WHERE ${part} AND (r.id IN (SELECT id FROM matches)) IS TRUE ${inOrder(order)} OFFSET 0) m ${joinRun}
      WHERE ${found} > ${sorted} AND ${found} <= ${walked}`,
    order: inPart(order, 'm.'),
  }));
  const few = `SELECT r.id, r.sort_value FROM matches m ${joinRun} WHERE ${found} <= ${sorted}`;
  const size = 'size AS MATERIALIZED (SELECT count(*) AS n FROM matches)';
  const matches = `matches AS MATERIALIZED (
    SELECT l0.id FROM ${[first, ...others.map((list) => `${list} USING (id)`)].join(' JOIN ')} LIMIT ${walked} + 1)`;
  return await readFound(
    db,
    request,
    conditions,
    [matches, size, ...pageOf([{ text: few, order: orderBy(order, 'r.') }, ...walks], order, count)],
    `${found} <= ${walked}`,
  );
}

/** Returns an SQL condition that is true if the page is full or all parts have ended. */
const isFull = (parts: readonly Select[], count: string): string =>
  `((SELECT count(*) FROM page) = ${count} OR (${parts.map(({ hasEnded = 'true' }) => hasEnded).join(' AND ')}))`;

/** SQL that selects runs, and the order of these runs. */
interface Select {
  readonly text: string;
  readonly order: string;
  /** An SQL condition that is true if the select has no further runs. If this member is absent, the select never has further runs. */
  readonly hasEnded?: string;
}

/**
 * Returns SQL of a relation `page` with the first `count` rows of all selects together. In the order of the page, all rows of a select come
 * after the rows of the selects before it.
 */
function pageOf(selects: readonly Select[], order: ListOrder, count: string): string[] {
  const relations = selects.map(({ text, order: own }, n) => {
    const earlier = selects.slice(0, n);
    // PostgreSQL checks these conditions in this order. So it looks for further runs only if the page is not full.
    const isMissing = earlier.map((_, before) => `(SELECT count(*) FROM p${before}) < ${count}`);
    const hasEnded = earlier.flatMap(({ hasEnded = [] }) => hasEnded);
    return `p${n} AS MATERIALIZED (${[text, ...isMissing, ...hasEnded].join(' AND ')} ${own} LIMIT ${count})`;
  });
  const union = selects.map((_, n) => `SELECT id, sort_value FROM p${n}`).join(' UNION ALL ');
  return [
    ...relations,
    `page AS MATERIALIZED (SELECT id, sort_value FROM (${union}) p ${orderBy(order, '')} LIMIT ${count})`,
  ];
}

/** Returns SQL for the order of the index of the sort key. */
const inOrder = ({ column, direction }: ListOrder): string => `ORDER BY ${column} ${direction}, r.id ${direction}`;

/**
 * Returns SQL for the same order, for the rows of the relation `of`. The SQL must not say NULLS LAST, because the index is made
 * without it. With NULLS LAST, PostgreSQL could not use the order of the index, and would read and sort all runs of this part of the
 * list.
 */
const inPart = ({ direction }: ListOrder, of: string): string =>
  `ORDER BY ${of}sort_value ${direction}, ${of}id ${direction}`;

/** Returns, for each part of the order, an SQL condition that is true if a run comes after the position. */
function sortParts(conditions: Conditions, { query, position }: PageRequest): string[] {
  const texts = ['r.team_id = $1'];
  if (query.sort_by === 'created_at') {
    const { created_after: after, created_before: before } = query;
    if (after !== undefined) texts.push(`r.created_at > ${conditions.bind(after)}::timestamptz`);
    if (before !== undefined) texts.push(`r.created_at < ${conditions.bind(before)}::timestamptz`);
  }
  return partsOf(conditions, onlyFilter(query, null), orderOf(query), position, null).map((part) =>
    [...texts, ...part].join(' AND '),
  );
}
