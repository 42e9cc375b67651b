/** The views of the list of runs. A view is a query with a name. */

import type { ListRunsQuery } from '@runyard/contract/runs/run-list';
import { type RunState, runStates, terminalStates } from '@runyard/contract/runs/run-states';
import { listOf, oneOf, type Search } from '../../frame/search.ts';

/** States of runs that have not ended. */
export const liveStates: readonly RunState[] = runStates.filter(
  (state) => !(terminalStates as readonly RunState[]).includes(state),
);

/** A default view, which every person has. */
export interface View {
  readonly name: string;
  readonly search: Search;
  /** True: the tab of the view shows the number of runs. */
  readonly isCounted?: true;
  /** True: the runs of the view need a person. */
  readonly asks?: true;
}

/** Returns the default views for a person. `today` is the beginning of the day in the time zone of the browser, in RFC 3339. */
export const viewsOf = (personUid: string, today: string): readonly View[] => [
  { name: 'All', search: {} },
  { name: 'Needs answer', search: { state: ['BLOCKED'] }, isCounted: true, asks: true },
  { name: 'Live', search: { state: liveStates }, isCounted: true },
  { name: 'Failed today', search: { state: ['FAILED', 'ERROR'], updated_after: today }, isCounted: true },
  { name: 'Started by me', search: { creator: [personUid] } },
];

/** Returns the beginning of the current day. */
export function startOfToday(now: Date = new Date()): string {
  return new Date(now.getFullYear(), now.getMonth(), now.getDate()).toISOString();
}

/** Members of the address that filter the list. The values are the labels under which the page shows the filters. */
export const filterNames = {
  state: 'state',
  q: 'words',
  creator: 'started by',
  executor: 'acts as',
  source: 'source',
  model_id: 'model',
  environment_id: 'environment',
  error_code: 'error',
  schedule_id: 'schedule',
  automation_id: 'automation',
  factory_uid: 'factory',
  ancestor_run_id: 'below run',
  artifact_type: 'artifact',
  created_after: 'created after',
  created_before: 'created before',
  updated_after: 'changed after',
} as const;
export type FilterName = keyof typeof filterNames;

const repeated: readonly FilterName[] = ['state', 'creator', 'source', 'error_code', 'factory_uid'];

/** Returns the filters in an address as a query for the API. Does not check the values, because the service checks them. */
export function filtersOf(search: Search): Partial<ListRunsQuery> {
  const filters: Record<string, unknown> = {};
  for (const name of Object.keys(filterNames) as FilterName[]) {
    const values = listOf(search[name]);
    if (values.length > 0) filters[name] = repeated.includes(name) ? values : values[0];
  }
  return filters as Partial<ListRunsQuery>;
}

/** Returns the order that an address selects. */
export function orderOf(search: Search): Pick<ListRunsQuery, 'sort_by' | 'sort_order'> {
  const by = oneOf(search.sort_by);
  const order = oneOf(search.sort_order);
  return {
    sort_by: by === 'created_at' || by === 'title' || by === 'agent' ? by : 'updated_at',
    sort_order: order === 'asc' ? 'asc' : 'desc',
  };
}

/** Returns the filters and the order in an address as one text, without other members of the query. */
export function queryKeyOf(search: Search): string {
  return JSON.stringify([filtersOf(search), orderOf(search)]);
}
