/** Reads and follows one run: its record, its timeline and its conversation. */

import { isTerminal } from '@runyard/contract/runs/run-states';
import type { RunItem } from '@runyard/contract/runs/runs';
import type { TimelineEvent } from '@runyard/contract/runs/timeline';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useCallback, useEffect, useMemo, useState, useSyncExternalStore } from 'react';
import { isPassing } from '../../api/problem.ts';
import { useClient, useSession } from '../../api/session.ts';
import { followRun, type StreamStatus } from '../../api/stream.ts';
import { Story, type StoryView } from './story.ts';

/** Messages of one page of the past. */
const pageSize = 200;
/** How often a run is read whose reason changes without an event: one that waits, or one that has ended and may be continued. */
const waitingMs = 3_000;
const endedMs = 15_000;

export interface FollowedRun {
  readonly run: RunItem | undefined;
  readonly error: unknown;
  readonly timeline: readonly TimelineEvent[];
  readonly story: StoryView;
  /** Why the conversation cannot be shown; undefined: it can. */
  readonly storyError: unknown;
  readonly isReading: boolean;
  readonly status: StreamStatus;
  /** Reads the page before the oldest entry. */
  readonly readOlder: () => Promise<void>;
  /** Reads the run again, for example after an action of this page. */
  readonly refresh: () => Promise<void>;
}

/** Follows a run for as long as the component is mounted. */
export function useRun(runId: string): FollowedRun {
  const session = useSession();
  const client = useClient();
  const queries = useQueryClient();
  const key = useMemo(() => ['run', session.team.uid, runId], [session.team.uid, runId]);
  const run = useQuery({
    queryKey: key,
    queryFn: async () => await client.getRun({ params: { runId } }),
    refetchInterval: ({ state }) =>
      state.data === undefined || state.data.state === 'INPROGRESS'
        ? false
        : isTerminal(state.data.state) && state.data.status_message?.session_debug_until === undefined
          ? endedMs
          : waitingMs,
  });
  const [story, setStory] = useState(() => new Story());
  const [timeline, setTimeline] = useState<readonly TimelineEvent[]>([]);
  const [status, setStatus] = useState<StreamStatus>({ kind: 'connecting' });
  const [storyError, setStoryError] = useState<unknown>();
  const [isReading, setReading] = useState(true);

  const refresh = useCallback(async () => await queries.invalidateQueries({ queryKey: key }), [queries, key]);

  useEffect(() => {
    const controller = new AbortController();
    const { signal } = controller;
    const fresh = new Story();
    setStory(fresh);
    setTimeline([]);
    setStoryError(undefined);
    setReading(true);
    const seen = new Set<string>();
    const addTimeline = (events: readonly TimelineEvent[]) => {
      const added = events.filter(({ event_uuid: uuid }) => !seen.has(uuid));
      for (const { event_uuid: uuid } of added) seen.add(uuid);
      if (added.length > 0) setTimeline((earlier) => [...earlier, ...added]);
    };
    let refreshTimer: ReturnType<typeof setTimeout> | undefined;
    const refreshSoon = () => {
      refreshTimer ??= setTimeout(() => {
        refreshTimer = undefined;
        void refresh();
      }, 100);
    };
    const follow = async () => {
      const [page, { events }] = await Promise.all([
        client.listRunMessages({ params: { runId }, query: { limit: pageSize }, signal }),
        client.getRunTimeline({ params: { runId }, signal }),
      ]);
      fresh.prepend(page);
      addTimeline(events);
      setReading(false);
      let lastEventId = page.reached;
      // An ended run may be continued: then its stream goes on.
      for (;;) {
        for await (const { id, event } of followRun(session, runId, { lastEventId, signal, onStatus: setStatus })) {
          lastEventId = id;
          if (event.type === 'conversation') fresh.add(event.event);
          else if (event.type === 'timeline') addTimeline([event.event]);
          if (event.type !== 'conversation' || event.event.type === 'blocked' || event.event.type === 'decided')
            refreshSoon();
        }
        await untilChanged(lastEventId, signal);
      }
    };
    /** Waits until the run is at work again, as the repeated reads of its record tell. */
    const untilChanged = (_after: string, stop: AbortSignal): Promise<void> =>
      new Promise((resolve, reject) => {
        const check = () => {
          const state = queries.getQueryData<RunItem>(key)?.state;
          if (state !== undefined && !isTerminal(state)) done(resolve);
        };
        const done = (end: () => void) => {
          unsubscribe();
          end();
        };
        const unsubscribe = queries.getQueryCache().subscribe(check);
        stop.addEventListener('abort', () => done(() => reject(stop.reason)));
        check();
      });
    const start = async (): Promise<void> => {
      try {
        await follow();
      } catch (error) {
        if (signal.aborted) return;
        if (isPassing(error)) {
          setTimeout(() => signal.aborted || void start(), 2000);
          return;
        }
        setStoryError(error);
        setReading(false);
      }
    };
    void start();
    return () => {
      clearTimeout(refreshTimer);
      controller.abort();
    };
  }, [client, session, runId, queries, key, refresh]);

  const view = useSyncExternalStore(story.subscribe, story.view);
  const readOlder = useCallback(async () => {
    const { older } = story.view();
    if (older === undefined) return;
    story.prepend(await client.listRunMessages({ params: { runId }, query: { limit: pageSize, before: older } }));
  }, [story, client, runId]);

  return { run: run.data, error: run.error, timeline, story: view, storyError, isReading, status, readOlder, refresh };
}
