import type { ListRunsQuery } from '@runyard/contract/runs/run-list';
import type { Queryable } from '../../../platform/store/database/database.ts';
import { addColumnFilters, changedAfter, filtersOf, hasFacet, hourBounds } from './filters.ts';
import { type Conditions, onlyFilter, type PageRequest, startConditions } from './page-query.ts';
import { listAlternativesOf } from './parts.ts';

/**
 * Returns SQL for the ids of the runs of a list, in any order. The SQL reads one index and no rows of `runs`. It may find more runs than
 * match.
 */
export type IdList = (conditions: Conditions) => string;

/** Returns, for each filter of the query, the list of its runs. */
export function idListsOf(query: ListRunsQuery): IdList[] {
  const { facets, columns } = filtersOf(query);
  const ofFacets = facets.map(
    (facet): IdList =>
      (conditions) =>
        `SELECT f.run_id AS id FROM run_facets f
        WHERE f.team_id = $1 AND ${hasFacet(conditions, 'f', facet)} ${hourBounds(conditions, query, null)}`,
  );
  const ofColumns = columns
    .filter((name) => name !== 'created_before')
    .map(
      (name): IdList =>
        (conditions) => {
          const own = { ...conditions, joins: [], texts: ['r.team_id = $1'] };
          const alone = onlyFilter(query, name);
          addColumnFilters(own, alone);
          own.texts.push(...changedAfter(own, query).map((time) => `r.updated_at > ${time}`));
          const [parts = ['true']] = listAlternativesOf(own, alone);
          return parts.map((part) => select([...own.texts, part])).join(' UNION ALL ');
        },
    );
  const bound =
    (...bounds: [column: string, time: string | undefined][]): IdList =>
    ({ bind }) => {
      const given = bounds.filter(([, time]) => time !== undefined);
      return select(['r.team_id = $1', ...given.map(([column, time]) => `${column} ${bind(time)}::timestamptz`)]);
    };
  const { created_after: after, created_before: before, updated_after: changed } = query;
  return [
    ...ofFacets,
    ...ofColumns,
    ...((after ?? before) ? [bound(['r.created_at >', after], ['r.created_at <', before])] : []),
    ...(changed === undefined ? [] : [bound(['r.updated_at >', changed])]),
  ];
}

/** Returns the lists of the filters that have at most `most` runs by the statistics of PostgreSQL, the shortest first. */
export async function listsBySize(db: Queryable, { teamId, query }: PageRequest, most: number): Promise<IdList[]> {
  const sized: { list: IdList; size: number }[] = [];
  for (const list of idListsOf(query)) {
    const conditions = startConditions(teamId);
    const [row] = await db.query<{ 'QUERY PLAN': [{ Plan: { 'Plan Rows': number } }] }>(
      `EXPLAIN (FORMAT JSON) ${list(conditions)}`,
      conditions.values,
    );
    const size = row?.['QUERY PLAN'][0].Plan['Plan Rows'] ?? Number.POSITIVE_INFINITY;
    if (size <= most) sized.push({ list, size });
  }
  return sized.sort((a, b) => a.size - b.size).map(({ list }) => list);
}

const select = (texts: readonly string[]): string => `SELECT r.id FROM runs r WHERE ${texts.join(' AND ')}`;
