/** Splits a list into parts that each come from an index in the order of the page, and merges the parts. */
import type { ListRunsQuery } from '@runyard/contract/runs/run-list';
import type { RunState, RunTaskStatus } from '@runyard/contract/runs/states';
import type { CursorPosition } from '../../../platform/store/cursor.ts';
import { afterPosition, type ListOrder } from './order.ts';
import type { Conditions } from './page-query.ts';

/**
 * The column `run_span` divides runs into classes by the time between creation and last change. This list has the longest time of each
 * class; the last class has no limit and is not in this list.
 */
export const spans = ['5 minutes', '1 hour', '12 hours', '7 days'];

/** The states that a run may have in the list for this status. Descendants are not regarded here. */
const statesOfStatus: Record<RunTaskStatus, readonly RunState[]> = {
  running: ['QUEUED', 'PENDING', 'CLAIMED', 'INPROGRESS'],
  failed: ['FAILED', 'ERROR'],
  blocked: ['BLOCKED'],
  cancelled: ['CANCELLED'],
  complete: ['SUCCEEDED'],
};

/**
 * SQL: the ids of the ancestors of each run that is working, as an array. The condition is the same as in the index `runs_working_below`.
 */
const aboveWork = `ARRAY(SELECT DISTINCT unnest(w.ancestor_ids) FROM runs w
  WHERE w.team_id = $1 AND w.ancestor_ids <> '{}' AND w.state IN (${statesOfStatus.running.map((state) => `'${state}'`).join(', ')}))`;

function statusesOf({ bind }: Pick<Conditions, 'bind'>, statuses: readonly RunTaskStatus[]): string[] {
  const states = [...new Set(statuses.flatMap((status) => statesOfStatus[status]))];
  const own = states.map((state) => `r.state = ${bind(state)}`);
  if (!statuses.includes('running')) return own;
  return [...own, `(r.state <> ALL(${bind(states)}::text[]) AND r.id = ANY(${aboveWork}))`];
}

/** For each filter that may have several values, returns a condition for each value. A run matches at most one condition of a filter. */
export function alternativesOf(
  { bind }: Pick<Conditions, 'bind'>,
  query: Partial<Pick<ListRunsQuery, 'state' | 'source' | 'task_status' | 'error_code' | 'creator'>>,
): string[][] {
  const { state, source, task_status: statuses, error_code: codes, creator } = query;
  const oneOf = (column: string, values: readonly string[] | undefined) =>
    values ? [[...new Set(values)].map((value) => `${column} = ${bind(value)}`)] : [];
  return [
    ...oneOf('r.state', state),
    ...oneOf(
      'r.source COLLATE "C"',
      source?.map((each) => (each === 'CUSTOM_WEBHOOK' ? 'WEBHOOK' : each)),
    ),
    ...oneOf('r.error_code COLLATE "C"', codes),
    ...oneOf('r.creator_uid COLLATE "C"', creator),
    ...(statuses ? [statusesOf({ bind }, statuses)] : []),
  ];
}

/** Largest number of pairs of a state and a source that a list merges. Each pair is a part of the statement. */
const maxPairs = 12;

/**
 * Returns true if a filter by states and a filter by sources are one filter, whose list has a part for each pair of a state and a source.
 * The index `runs_by_state_and_source` has the runs of each pair in order.
 */
export function arePaired({ state, source, task_status: statuses }: ListRunsQuery): boolean {
  if (source === undefined || (state === undefined) === (statuses === undefined)) return false;
  const [ofState = []] = alternativesOf({ bind: String }, { state, task_status: statuses });
  return ofState.length * source.length <= maxPairs;
}

/** Returns the conditions of `alternativesOf`; if states and sources are one filter, a condition for each pair of them. */
export function listAlternativesOf(conditions: Pick<Conditions, 'bind'>, query: ListRunsQuery): string[][] {
  if (!arePaired(query)) return alternativesOf(conditions, query);
  const { state, source, task_status, error_code, creator } = query;
  const [ones = [], others = []] = alternativesOf(conditions, { state, source, task_status });
  return [
    ones.flatMap((one) => others.map((other) => `${one} AND ${other}`)),
    ...alternativesOf(conditions, { error_code, creator }),
  ];
}

/** Adds the conditions that require one value of each of these filters. */
export function addAlternatives(conditions: Conditions, alternatives: readonly (readonly string[])[]): void {
  conditions.texts.push(...alternatives.map((each) => `(${each.join(' OR ')})`));
}

/**
 * Returns the conditions of each part of the list. A run belongs to at most one part. `hour` is the column with the hour of the last
 * change, if the list uses it. Adds conditions that hold for all parts to `conditions`.
 */
export function partsOf(
  conditions: Conditions,
  query: ListRunsQuery,
  order: ListOrder,
  position: CursorPosition | null,
  hour: string | null,
): string[][] {
  const { bind } = conditions;
  const after = position ? afterPosition(conditions, query, position, hour) : [];
  const byChange = query.sort_by === 'updated_at' && hour === null;
  const alternatives = byChange ? listAlternativesOf(conditions, query) : alternativesOf(conditions, query);
  const merged = byChange ? alternatives.find((each) => each.length > 1) : undefined;
  addAlternatives(
    conditions,
    alternatives.filter((each) => each !== merged),
  );
  if (merged) return merged.map((condition) => [condition, ...after]);
  if (order.nullable !== null) {
    const empty = `${order.nullable} IS NULL`;
    return position?.value === null ? [[empty, ...after]] : [[`${order.nullable} IS NOT NULL`, ...after], [empty]];
  }
  if (query.created_before !== undefined && byChange && query.sort_order === 'desc') {
    const before = `${bind(query.created_before)}::timestamptz`;
    return [...spans, null].map((span, index) => [
      `run_span(r.created_at, r.updated_at) = ${index}`,
      ...(span === null ? [] : [`r.updated_at < ${before} + interval '${span}'`]),
      ...after,
    ]);
  }
  return [after];
}

/** Returns SQL for the first `limit` runs of all parts together, in order. */
export function mergeParts(
  { joins, texts }: Conditions,
  { column, collation, direction }: ListOrder,
  parts: readonly (readonly string[])[],
  hour: string | null,
  limit: string,
): string {
  const selects = parts.map(
    (part) => `SELECT r.id, ${column} AS sort_value FROM runs r ${joins.join(' ')}
      WHERE ${[...texts, ...part].join(' AND ')}
      ORDER BY ${hour ? `${hour} ${direction}, ` : ''}${column} ${direction}, r.id ${direction} LIMIT ${limit}`,
  );
  if (selects.length === 1) return selects.join('');
  return `SELECT id, sort_value FROM (${selects.map((select) => `(${select})`).join(' UNION ALL ')}) parts
    ORDER BY sort_value${collation} ${direction} NULLS LAST, id ${direction} LIMIT ${limit}`;
}
