import type { ListRunsQuery } from '@runyard/contract/runs/run-list';
import { emptyEnvironment } from '@runyard/contract/wire/choices';
import type { CursorPosition } from '../../../platform/store/cursor.ts';
import { isUuid } from '../../../platform/store/database/uuid.ts';
import { specsToFind } from '../../../team/skills/spec.ts';
import type { Conditions } from './page-query.ts';
import { arePaired } from './parts.ts';

/**
 * A filter by facets, which are texts in `run_facets` that describe a run. A run matches the filter if it has one of the filter's facets.
 * A run never has two facets of the same filter.
 */
export type Facet = readonly string[];

// No key of a run contains an equals sign. In the key of a query, an equals sign is encoded, so that it is not read as the start of the
// value.
const facetOfPair = ([key, value]: readonly [string, string]): string =>
  `metadata:${key.replaceAll('=', '%3D')}=${value}`;

/** Returns the facets by which the query filters, in the format in which the triggers of `run_facets` write them. */
export function facetsOf(query: ListRunsQuery): Facet[] {
  const pairs = Object.entries(query.metadata ?? {});
  if (query.automation_id !== undefined) pairs.push(['automation_id', query.automation_id]);
  const facets: Facet[] = pairs.map((pair) => [facetOfPair(pair)]);
  if (query.factory_uid !== undefined)
    facets.push([...new Set(query.factory_uid)].map((uid) => facetOfPair(['factory_uid', uid])));
  if (query.factory_only) facets.push(['factory']);
  if (query.ancestor_run_id !== undefined) facets.push([`ancestor:${query.ancestor_run_id.toLowerCase()}`]);
  if (query.artifact_type !== undefined) facets.push([`artifact:${query.artifact_type}`]);
  return [...new Map(facets.map((facet) => [JSON.stringify(facet), facet])).values()];
}

/** Members of a query for which no index has a list of runs: they are no filters, or they limit every list. */
const noFilters: readonly string[] = [
  'limit',
  'cursor',
  'view',
  'sort_by',
  'sort_order',
  'q',
  'run_id',
  'updated_after',
  'created_after',
];
/** Filters by facets, which `facetsOf` reads. */
const facetFilters: readonly string[] = [
  'metadata',
  'automation_id',
  'factory_uid',
  'factory_only',
  'ancestor_run_id',
  'artifact_type',
];

/** Filters of a query. For each of them, an index contains the list of the matching runs. */
export interface GivenFilters {
  readonly facets: readonly Facet[];
  /** Filters by a column of the run. */
  readonly columns: readonly (keyof ListRunsQuery)[];
}

/** Returns the filters that the query has. */
export function filtersOf(query: ListRunsQuery): GivenFilters {
  const given = Object.entries(query).filter(([, value]) => value !== undefined);
  const columns = given
    .map(([name]) => name as keyof ListRunsQuery)
    .filter((name) => !noFilters.includes(name) && !facetFilters.includes(name))
    // `skill` is an alias of `skill_spec`.
    .filter((name) => !(name === 'skill' && query.skill_spec !== undefined))
    // The list of the sources already has only the runs of these states.
    .filter((name) => !((name === 'state' || name === 'task_status') && arePaired(query)));
  return { facets: facetsOf(query), columns };
}

/** Returns an SQL condition that is true if the row `alias` of `run_facets` is for the facet. */
export const hasFacet = ({ bind }: Pick<Conditions, 'bind'>, alias: string, facet: Facet): string =>
  facet.length === 1 ? `${alias}.facet = ${bind(facet[0])}` : `${alias}.facet = ANY(${bind(facet)}::text[])`;

/**
 * SQL alias for the row of the first facet. The rows of the other facets are also joined by the hour of this row, so that the planner may
 * begin with any of them.
 */
export const firstFacet = 'f0';

/**
 * Joins the rows of the facets, limited to the hours in which runs of the list may have changed last. Returns the column with the hour of
 * the last change, because the sort order may begin with this column. Returns null if there is no facet.
 */
export function joinFacets(conditions: Conditions, query: ListRunsQuery): string | null {
  const facets = facetsOf(query);
  for (const [index, facet] of facets.entries()) {
    const alias = `f${index}`;
    const same = index === 0 ? 'r.id' : `${firstFacet}.run_id AND ${alias}.updated_hour = ${firstFacet}.updated_hour`;
    conditions.joins.push(
      `JOIN run_facets ${alias} ON ${alias}.team_id = $1 AND ${hasFacet(conditions, alias, facet)} AND ${alias}.run_id = ${same}`,
    );
  }
  if (facets.length === 0) return null;
  const hour = `${firstFacet}.updated_hour`;
  conditions.texts.push(...changedAfter(conditions, query).map((time) => `${hour} >= run_hour(${time})`));
  return hour;
}

/** Adds the conditions of all filters by columns of the run, except the filters of `alternativesOf`: `partsOf` adds those. */
export function addColumnFilters({ texts, bind }: Conditions, query: ListRunsQuery): void {
  // Compare text by bytes, as the indexes do.
  const equal = (column: string, value: string | undefined) => {
    if (value !== undefined) texts.push(`r.${column} COLLATE "C" = ${bind(value)}`);
  };
  equal('name', query.name);
  equal('model_id', query.model_id);
  equal('executor_uid', query.executor);
  equal('execution_location', query.execution_location);
  const skill = query.skill_spec ?? query.skill;
  // A request may name a skill without its path. The run shows the path after the skill was found.
  const [spec, ...places] = skill === undefined ? [] : specsToFind(skill);
  if (places.length === 0) equal('skill_spec', spec);
  else texts.push(`r.skill_spec COLLATE "C" = ANY(${bind([spec, ...places])}::text[])`);
  if (query.environment_id === emptyEnvironment) texts.push('r.environment_id IS NULL');
  else equal('environment_id', query.environment_id);
  if (query.schedule_id !== undefined) {
    texts.push(isUuid(query.schedule_id) ? `r.schedule_id = ${bind(query.schedule_id)}::uuid` : 'false');
  }
  if (query.run_id !== undefined) texts.push(`r.id = ANY(${bind(query.run_id.filter(isUuid))}::uuid[])`);
  if (query.created_before !== undefined) texts.push(`r.created_at < ${bind(query.created_before)}::timestamptz`);
  if (query.created_after !== undefined) texts.push(`r.created_at > ${bind(query.created_after)}::timestamptz`);
  texts.push(...changedAfter({ bind }, query).map((time) => `r.updated_at > ${time}`));
}

/**
 * Returns times that are not after the last change of any run in the list. A run never changes before its creation, so bounds on the
 * creation count too.
 */
export function changedAfter({ bind }: Pick<Conditions, 'bind'>, query: ListRunsQuery): string[] {
  const times = [query.updated_after, query.created_after].filter((time) => time !== undefined);
  return times.map((time) => `${bind(time)}::timestamptz`);
}

/** Returns SQL conditions (`AND …`, or '') that limit `run_facets f` to the hours in which runs of the page may have changed last. */
export function hourBounds(
  { bind }: Pick<Conditions, 'bind'>,
  query: ListRunsQuery,
  position: CursorPosition | null,
): string {
  const bounds = changedAfter({ bind }, query).map((time) => `AND f.updated_hour >= run_hour(${time})`);
  if (position) {
    const beyond = query.sort_order === 'asc' ? '>=' : '<=';
    bounds.push(`AND f.updated_hour ${beyond} run_hour(${bind(position.value)}::timestamptz)`);
  }
  return bounds.join(' ');
}
