import type { ListRunsQuery } from '@runyard/contract/runs/run-list';
import { emptyEnvironment } from '@runyard/contract/wire/choices';
import { changedAfter, type Facet, filtersOf } from './filters.ts';
import { canIntersect } from './intersect-lists.ts';

/**
 * A list of runs that an index has in order: the runs of a facet, the runs that match a filter by a column, or all runs in the order of the
 * sort key.
 */
export type FilterList =
  | { readonly facet: Facet }
  | { readonly filter: keyof ListRunsQuery }
  | { readonly filter: null };

/**
 * Reads the first `length` runs of a list, and selects those that match the other filters. The strategy may fail to fill the page.
 */
export interface Probe {
  readonly kind: 'probe_list';
  readonly list: FilterList;
  readonly length: number;
}

/** Reads the first `length` runs of a list, for a page in the order of creation. The strategy may fail to find the page. */
export interface CreatedProbe {
  readonly kind: 'created_by_change';
  readonly list: FilterList;
  readonly length: number;
}

/** A way to find a page. docs/decisions/run-list.md explains when each way is used. */
export type Strategy =
  /** One index has the runs of the page in its order. */
  | { readonly kind: 'read_in_order' }
  /** `probe-list.ts` */
  | Probe
  /** `intersect-lists.ts`: intersects the lists of the filters from their indexes alone. */
  | { readonly kind: 'intersect_lists' }
  /** Reads all matches and sorts them. */
  | { readonly kind: 'sort_matches' }
  /** `walk-sort.ts`: reads the runs of a filter that has at most this number, and sorts them. May fail. */
  | { readonly kind: 'short_list'; readonly length: number }
  /** `walk-sort.ts`: reads this number of runs in the order of the sort. May fail. */
  | { readonly kind: 'walk_sort'; readonly length: number }
  /**
   * `walk-sort.ts`: reads this number of runs of the shortest list in the order of the sort, if the list has at most `longest` runs. May
   * fail.
   */
  | { readonly kind: 'walk_list'; readonly length: number; readonly longest: number }
  /** `walk-sort.ts`: reads this number of runs that changed after a time, in the order of the skills. May fail. */
  | { readonly kind: 'walk_skills'; readonly length: number }
  /** `created-by-change.ts` */
  | CreatedProbe
  /**
   * `walk-sort.ts`: intersects the lists, and compares the matches with the index of the sort. May fail. With `longest`, does so only if
   * each list has at most this number of runs.
   */
  | { readonly kind: 'walk_matches'; readonly longest?: number }
  /** `search-words.ts`: looks for words week by week. */
  | { readonly kind: 'search_by_week' };

/** Number of runs that are first read from each list; and number of runs that are read next if the lists cannot be intersected. */
const shortProbe = 300;
const longProbe = 2000;
/**
 * Number of runs that are read from a list and compared with words. It is smaller than `longProbe`, because the words are in another table.
 */
const searchProbe = 1500;
/** If a filter matches at most this number of runs, all of them are read. */
const shortList = 1000;
/** Number of runs that are read in the order of the sort key. This is used if no filter has a list in this order. */
const walk = 1000;
/**
 * Number of runs that are read in the order of the sort key. This is used if each filter matches so many runs that a list of their ids
 * would be long.
 */
const longWalk = 20_000;
/** If each list of several filters has at most this number of runs, the lists are intersected before the runs of one list are read. */
const longestIntersected = 300_000;

/** Returns the strategies to try, in this order. The last one always finds the page. */
export function strategiesFor(query: ListRunsQuery, isSearch: boolean): readonly Strategy[] {
  if (query.run_id !== undefined && !isSearch) return [{ kind: 'sort_matches' }];
  if (query.sort_by !== 'updated_at') return inOtherOrder(query, isSearch);
  const probes = probesFor(query, isSearch);
  if (isSearch) return [...probes, { kind: 'search_by_week' }];
  if (probes.length === 0) return [{ kind: 'read_in_order' }];
  return [...probes, { kind: canIntersect(query) ? 'intersect_lists' : 'sort_matches' }];
}

function probesFor(query: ListRunsQuery, isSearch: boolean): readonly Probe[] {
  const lists = listsOf(query);
  const probeAll = (length: number): Probe[] => lists.map((list) => ({ kind: 'probe_list', list, length }));
  if (isSearch) return probeAll(searchProbe);
  if (lists.length < 2) return [];
  return canIntersect(query) ? probeAll(shortProbe) : [...probeAll(shortProbe), ...probeAll(longProbe)];
}

/** Returns the strategies for a sort key in whose order no filter has a list. */
function inOtherOrder(query: ListRunsQuery, isSearch: boolean): readonly Strategy[] {
  const lists = listsOf(query);
  const isChangedAfter = changedAfter({ bind: String }, query).length > 0;
  const isFiltered = lists.length > 0 || isChangedAfter;
  if (!isSearch && (!isFiltered || (!isChangedAfter && isInOrderOfSkills(query, lists))))
    return [{ kind: 'read_in_order' }];
  const byChange = (length: number): Strategy[] =>
    query.sort_by === 'created_at' && isFiltered
      ? (lists.length > 0 ? lists : [{ filter: null }]).map((list) => ({ kind: 'created_by_change', list, length }))
      : [];
  const walkLists = (longest: number): Strategy[] =>
    isFiltered ? [{ kind: 'walk_list', length: longProbe, longest }] : [];
  return [
    ...(isFiltered ? [{ kind: 'short_list', length: shortList } as const] : []),
    { kind: 'walk_sort', length: walk },
    ...byChange(shortProbe),
    ...byChange(longProbe),
    ...(query.sort_by === 'agent' && isChangedAfter ? [{ kind: 'walk_skills', length: longProbe } as const] : []),
    ...(lists.length > 1 && !isSearch ? [{ kind: 'walk_matches', longest: longestIntersected } as const] : []),
    ...walkLists(200_000),
    { kind: 'walk_matches' },
    { kind: 'walk_sort', length: longWalk },
    ...walkLists(1_000_000),
    { kind: isSearch ? 'search_by_week' : 'read_in_order' },
  ];
}

/**
 * Returns true if an index has the runs of the page that have a skill, in its order: `runs_skill` the runs of one skill, and
 * `runs_without_environment_by_skill` those without an environment.
 */
const isInOrderOfSkills = (
  { sort_by, skill, skill_spec, environment_id }: ListRunsQuery,
  lists: readonly FilterList[],
) =>
  sort_by === 'agent' &&
  lists.length === 1 &&
  ((skill_spec ?? skill) !== undefined || environment_id === emptyEnvironment);

function listsOf(query: ListRunsQuery): FilterList[] {
  const { facets, columns } = filtersOf(query);
  return [...facets.map((facet) => ({ facet })), ...columns.map((filter) => ({ filter }))];
}
