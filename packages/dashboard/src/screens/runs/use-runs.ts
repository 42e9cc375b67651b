/**
 * The rows of the list of runs. A changed run changes only its row, and no row moves. New runs at the top are shown only when the reader
 * asks for them.
 */

import type { ListRunsQuery } from '@runyard/contract/runs/run-list';
import { isTerminal } from '@runyard/contract/runs/run-states';
import type { ListRunsResponse, RunItem } from '@runyard/contract/runs/runs';
import { type InfiniteData, useInfiniteQuery, useQueryClient } from '@tanstack/react-query';
import { useCallback, useEffect, useMemo, useRef, useState } from 'react';
import { noteList } from '../../api/run-place.ts';
import { useClient, useSession } from '../../api/session.ts';
import { slowMs } from '../../api/slow-reads.ts';
import { useTeamEvents } from '../../api/stream.ts';
import type { Search } from '../../frame/search.ts';
import { filtersOf, orderOf, queryKeyOf } from './views.ts';

/** Number of rows of one page. */
const pageSize = 100;
/** All events that arrive within this number of milliseconds cause only one read of the changed runs. */
const gatherMs = 400;
/** Time to wait after a read that failed, in milliseconds. */
const failedMs = 5_000;
/** Maximum number of runs in one read. */
const mostIds = 100;

export interface Runs {
  readonly rows: readonly RunItem[];
  readonly error: unknown;
  readonly isLoading: boolean;
  /** True: the rows are from an earlier query, because the answer to the current query has not arrived. */
  readonly isStale: boolean;
  readonly hasMore: boolean;
  readonly readMore: () => void;
  readonly retry: () => void;
  /** Number of new runs that match the filters but are not shown yet. */
  readonly waiting: number;
  /** Reads the list again, so that it also shows the new runs. */
  readonly showWaiting: () => void;
}

/**
 * Reads the runs that the query of the address selects, and keeps them current. `mayEnter` returns true if new runs may be shown at once.
 */
export function useRuns(search: Search, mayEnter: () => boolean): Runs {
  const client = useClient();
  const { team } = useSession();
  const queries = useQueryClient();
  const text = queryKeyOf(search);
  const key = useMemo(() => ['runs', team.uid, text], [team.uid, text]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the text has all of the search that matters
  const query = useMemo(
    (): Partial<ListRunsQuery> => ({ ...filtersOf(search), ...orderOf(search), view: 'summary' }),
    [text],
  );
  const list = useInfiniteQuery({
    queryKey: key,
    queryFn: async ({ pageParam, signal }) =>
      await client.listRuns({
        query: { ...query, limit: pageSize, ...(pageParam === '' ? {} : { cursor: pageParam }) },
        signal,
      }),
    initialPageParam: '',
    getNextPageParam: ({ page_info: page }) => (page.has_next_page ? page.next_cursor : undefined),
    // Read the list again when the person returns to it, because no component has followed its events meanwhile. While the list is
    // shown, only events change its rows.
    staleTime: 0,
    refetchOnWindowFocus: false,
    refetchOnReconnect: false,
    refetchInterval: ({ state }) => (state.status === 'error' ? slowMs : false),
    placeholderData: (before) => before,
  });
  useEffect(() => noteList(key, query.sort_order === 'asc'), [key, query]);
  const rows = useMemo(() => list.data?.pages.flatMap(({ runs }) => runs) ?? [], [list.data]);
  const [waiting, setWaiting] = useState<ReadonlySet<string>>(new Set());
  // biome-ignore lint/correctness/useExhaustiveDependencies: another list has other runs that wait
  useEffect(() => setWaiting(new Set()), [text, team.uid]);

  const showWaiting = useCallback(() => {
    setWaiting(new Set());
    void queries.resetQueries({ queryKey: key });
  }, [queries, key]);

  const gathered = useRef(new Set<string>());
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const readGathered = async () => {
    timer.current = undefined;
    // A read of the list that is in progress would replace the changed rows by earlier ones.
    if (queries.isFetching({ queryKey: key, exact: true }) > 0) return gatherSoon(gatherMs);
    const ids = [...gathered.current].slice(0, mostIds);
    gathered.current = new Set([...gathered.current].slice(mostIds));
    if (gathered.current.size > 0) gatherSoon(gatherMs);
    const data = queries.getQueryData<InfiniteData<ListRunsResponse>>(key);
    if (data === undefined) return;
    const shownIds = new Set(data.pages.flatMap(({ runs }) => runs.map(({ run_id: id }) => id)));
    const known = ids.filter((id) => shownIds.has(id));
    const unknown = ids.filter((id) => !shownIds.has(id));
    const [changed, entering] = await Promise.all([
      known.length === 0 ? undefined : client.listRuns({ query: { view: 'summary', run_id: known, limit: mostIds } }),
      unknown.length === 0 ? undefined : client.listRuns({ query: { ...query, run_id: unknown, limit: mostIds } }),
    ]);
    if (changed) {
      const fresh = new Map(changed.runs.map((run) => [run.run_id, run]));
      queries.setQueryData<InfiniteData<ListRunsResponse>>(
        key,
        (before) =>
          before && {
            ...before,
            pages: before.pages.map((page) => ({
              ...page,
              runs: page.runs.map((run) => fresh.get(run.run_id) ?? run),
            })),
          },
      );
    }
    if (entering === undefined || entering.runs.length === 0) return;
    if (mayEnter()) showWaiting();
    else setWaiting((before) => new Set([...before, ...entering.runs.map(({ run_id: id }) => id)]));
  };
  /**
   * Reads, after `ms` milliseconds, the runs that events have named. If the read fails, repeats it later, so that no row stays outdated.
   */
  const gatherSoon = (ms: number) => {
    timer.current ??= setTimeout(() => {
      const ids = [...gathered.current].slice(0, mostIds);
      readGathered().catch(() => {
        for (const id of ids) gathered.current.add(id);
        gatherSoon(failedMs);
      });
    }, ms);
  };
  useTeamEvents(
    ({ run_id: id }) => {
      gathered.current.add(id);
      gatherSoon(gatherMs);
    },
    () => void queries.invalidateQueries({ queryKey: key }),
  );
  /** Reads what events have not told: the rows that may still change, and the runs that now match. */
  const readSlowly = async () => {
    if (document.hidden || list.data === undefined) return;
    const { runs } = await client.listRuns({ query: { ...query, limit: mostIds } });
    for (const run of [...runs, ...rows.filter(({ state }) => !isTerminal(state))]) gathered.current.add(run.run_id);
    gatherSoon(gatherMs);
  };
  const slowly = useRef(readSlowly);
  useEffect(() => {
    slowly.current = readSlowly;
  });
  useEffect(() => {
    const slow = setInterval(() => slowly.current().catch(() => undefined), slowMs);
    return () => {
      clearInterval(slow);
      clearTimeout(timer.current);
    };
  }, []);

  return {
    rows,
    error: list.error,
    isLoading: list.isPending,
    isStale: list.isPlaceholderData,
    hasMore: list.hasNextPage,
    readMore: () => {
      if (list.hasNextPage && !list.isFetchingNextPage && !list.isFetchNextPageError) void list.fetchNextPage();
    },
    retry: () => void (list.isFetchNextPageError ? list.fetchNextPage() : list.refetch()),
    waiting: waiting.size,
    showWaiting,
  };
}
