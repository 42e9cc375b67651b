import type { Queryable } from '../../../platform/store/database/database.ts';
import { orderBy, orderOf } from './order.ts';
import { type PageQuery, type PageRequest, readFound, startConditions } from './page-query.ts';
import { spans } from './parts.ts';
import { readColumnList, readFacetList } from './probe-list.ts';
import type { SearchTemplate } from './search-words.ts';
import type { CreatedProbe } from './strategies.ts';
import { joinMatching } from './walk-sort.ts';

/** Maximum number of stragglers (see `createdByChange`) that are read. */
const maxStragglers = 5_000;

/** For each direction of the order: the id that comes before all other ids. */
const extremeIds = { asc: '00000000-0000-0000-0000-000000000000', desc: 'ffffffff-ffff-ffff-ffff-ffffffffffff' };

/**
 * Strategy for a page in the order of creation: reads the first `length` runs from the list of one filter, which is in the order of the
 * last change. A run is never created after its last change. So runs that were not read cannot have been created after the last change of
 * the last run that was read. A page of the earliest creations also needs the *stragglers*: runs that were created before the end of the
 * page, but changed after the last run that was read. Returns null if these runs do not fill the page although the list has more runs.
 */
export async function createdByChange(
  db: Queryable,
  request: PageRequest,
  { list, length }: CreatedProbe,
  search: SearchTemplate | null,
): Promise<PageQuery | null> {
  const { query } = request;
  const conditions = startConditions(request.teamId);
  const { bind } = conditions;
  const order = orderOf(query);
  const isUp = query.sort_order === 'asc';
  const start = startOf(request);
  const byChange = {
    ...request,
    query: { ...query, sort_by: 'updated_at' as const },
    position: start === null ? null : { value: start, id: extremeIds[query.sort_order], isSimilar: false },
  };
  const readList =
    'facet' in list
      ? readFacetList(conditions, byChange, list.facet)
      : readColumnList(conditions, byChange, list.filter);
  const [size, count, most] = [bind(length), bind(request.count), bind(maxStragglers)];
  const hasMore = `(SELECT count(*) FROM probed) = ${size}`;
  const edge =
    'facet' in list
      ? `(SELECT ${isUp ? 'max(hour)' : `min(hour) + interval '1 hour'`} FROM probed)`
      : `(SELECT ${isUp ? 'max' : 'min'}(sort_value) FROM probed)`;
  const matching = (of: string) =>
    `SELECT r.id, r.sort_value FROM ${of} p ${joinMatching(conditions, request, 'p', search)}`;
  const isAllSeen = `(SELECT count(*) FROM stragglers) <= ${most}`;
  const end = `${orderBy(order, '')} LIMIT ${count}`;
  const probed = `probed AS MATERIALIZED (${readList(size)})`;
  if (isUp) {
    const isFull = `(SELECT count(*) FROM first) = ${count}`;
    const relations = [
      probed,
      `first AS MATERIALIZED (${matching('probed')} ${end})`,
      stragglersOf(edge, '(SELECT max(sort_value) FROM first)', `${hasMore} AND ${isFull}`, most),
      `page AS (SELECT id, sort_value FROM (SELECT id, sort_value FROM first UNION ${matching('stragglers')}) p ${end})`,
    ];
    return await readFound(db, request, conditions, relations, `NOT ${hasMore} OR (${isFull} AND ${isAllSeen})`);
  }
  const from = start === null ? 'NULL::timestamptz' : `${bind(start)}::timestamptz`;
  const relations = [
    probed,
    stragglersOf(from, from, start === null ? 'false' : 'true', most),
    `read AS MATERIALIZED (SELECT id FROM probed UNION SELECT id FROM stragglers)`,
    `matching AS MATERIALIZED (${matching('read')})`,
    `page AS MATERIALIZED (SELECT id, sort_value FROM matching WHERE NOT ${hasMore} OR sort_value > ${edge} ${end})`,
  ];
  const isFull = `(SELECT count(*) FROM page) = ${count}`;
  return await readFound(db, request, conditions, relations, `${isAllSeen} AND (NOT ${hasMore} OR ${isFull})`);
}

/**
 * Returns the creation time at which the page begins. In descending order, no run that was created later is listed; in ascending order, no
 * run that was created earlier. Returns null if there is no such limit.
 */
function startOf({ query, position }: PageRequest): string | null {
  if (position) return position.value;
  return (query.sort_order === 'desc' ? query.created_before : undefined) ?? null;
}

/**
 * Returns SQL for the relation `stragglers`: runs that changed at the time `changed` or later, and were created at the time `created` or
 * earlier.
 */
function stragglersOf(changed: string, created: string, condition: string, most: string): string {
  const classes = [...spans, null].map((span, index) => {
    const before = span === null ? '' : `AND r.updated_at <= ${created} + interval '${span}'`;
    return `SELECT r.id FROM runs r WHERE ${condition} AND r.team_id = $1 AND run_span(r.created_at, r.updated_at) = ${index}
      AND r.updated_at >= ${changed} ${before} AND r.created_at <= ${created}`;
  });
  return `stragglers AS MATERIALIZED (${classes.join(' UNION ALL ')} LIMIT ${most} + 1)`;
}
