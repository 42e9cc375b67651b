import type { ListRunsQuery } from '@runyard/contract/runs/run-list';
import { changedAfter, type Facet, filtersOf } from './filters.ts';
import { canIntersect } from './intersect-lists.ts';

/** Runs in the order of an index: those with a facet, those that match a filter on a column, or all in the order of the sort. */
export type FilterList =
  | { readonly facet: Facet }
  | { readonly filter: keyof ListRunsQuery }
  | { readonly filter: null };

/** Reads the first `length` runs of a list, and keeps those that match the other filters. The strategy may fail to find the page. */
export interface Probe {
  readonly kind: 'probe_list';
  readonly list: FilterList;
  readonly length: number;
}

/** A way to find a page; docs/decisions/run-list.md explains which one is used when. */
export type Strategy =
  /** `read-in-order.ts`: one index has the runs of the page in its order. */
  | { readonly kind: 'read_in_order' }
  /** `probe-list.ts` */
  | Probe
  /** `intersect-lists.ts`: intersects the lists of the filters from their indexes alone. */
  | { readonly kind: 'intersect_lists' }
  /** `sort-matches.ts`: reads all matches and sorts them. */
  | { readonly kind: 'sort_matches' }
  /** `search-words.ts`: looks for words week by week. */
  | { readonly kind: 'search_by_week' };

/** Number of runs of each list that are probed first, and number that are probed if the lists cannot be intersected. */
const shortProbe = 300;
const longProbe = 2000;
/** Runs that are probed in the order of a sort that no filter has. */
const sortProbe = 4000;
/** Runs that are probed for words, which are read from another table. */
const searchProbe = 1500;

/** Returns the strategies to try, in this order. Only probes may not find the page; the last one always finds it. */
export function strategiesFor(query: ListRunsQuery, isSearch: boolean): readonly Strategy[] {
  if (query.run_id !== undefined && !isSearch) return [{ kind: 'sort_matches' }];
  const probes = probesFor(query, isSearch);
  if (isSearch) return [...probes, { kind: 'search_by_week' }];
  if (probes.length === 0) return [{ kind: 'read_in_order' }];
  return [...probes, { kind: canIntersect(query) ? 'intersect_lists' : 'sort_matches' }];
}

function probesFor(query: ListRunsQuery, isSearch: boolean): readonly Probe[] {
  const { facets, columns } = filtersOf(query);
  if (query.sort_by !== 'updated_at') {
    const isFiltered = facets.length + columns.length > 0 || changedAfter({ bind: String }, query).length > 0;
    if (!isFiltered && !isSearch) return [];
    return [{ kind: 'probe_list', list: { filter: null }, length: isSearch ? searchProbe : sortProbe }];
  }
  const lists: FilterList[] = [...facets.map((facet) => ({ facet })), ...columns.map((filter) => ({ filter }))];
  const probeAll = (length: number): Probe[] => lists.map((list) => ({ kind: 'probe_list', list, length }));
  if (isSearch) return probeAll(searchProbe);
  if (lists.length < 2) return [];
  return canIntersect(query) ? probeAll(shortProbe) : [...probeAll(shortProbe), ...probeAll(longProbe)];
}
