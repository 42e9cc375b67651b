/**
 * Stores the list of runs that the person opened last, and the run that the page showed last. So the screen of a run can open the
 * previous or the next run of the list.
 */

import type { ListRunsResponse } from '@runyard/contract/runs/runs';
import { type InfiniteData, type QueryKey, useQueryClient } from '@tanstack/react-query';

let list: { readonly key: QueryKey; readonly isOldestFirst: boolean } | undefined;
let lastRun: string | undefined;

/** Stores the list that the page shows. */
export function noteList(key: QueryKey, isOldestFirst: boolean): void {
  list = { key, isOldestFirst };
}

/** Stores the run that the page shows. */
export function noteRun(runId: string): void {
  lastRun = runId;
}

/** Returns the id of the run that the page showed last. */
export const lastRunShown = (): string | undefined => lastRun;

/**
 * Returns a function that finds the loaded run before or after a run in the list. The function returns undefined if there is no such run.
 */
export function useNeighbour(runId: string): (which: 'older' | 'newer') => string | undefined {
  const queries = useQueryClient();
  return (which) => {
    const pages = list && queries.getQueryData<InfiniteData<ListRunsResponse>>(list.key)?.pages;
    const ids = (pages ?? []).flatMap(({ runs }) => runs.map(({ run_id: id }) => id));
    const at = ids.indexOf(runId);
    if (at < 0) return undefined;
    return ids[at + ((which === 'older') === list?.isOldestFirst ? -1 : 1)];
  };
}
