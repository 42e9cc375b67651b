/** Reads and follows one run: its record, its timeline and its conversation. */

import { EventsGoneError } from '@runyard/client';
import { isTerminal } from '@runyard/contract/runs/run-states';
import type { RunItem } from '@runyard/contract/runs/runs';
import type { TimelineEvent } from '@runyard/contract/runs/timeline';
import { useQueryClient } from '@tanstack/react-query';
import { useCallback, useEffect, useMemo, useRef, useState } from 'react';
import { isPassing } from '../../api/problem.ts';
import { useRead } from '../../api/read.ts';
import { useClient, useSession } from '../../api/session.ts';
import { slowMs } from '../../api/slow-reads.ts';
import { followRun, type StreamStatus } from '../../api/stream.ts';
import { useSoon } from '../../parts/soon.ts';
import { Story } from './story.ts';

/** Number of messages on one older page of the conversation. */
const pageSize = 200;
/** Number of messages on an older page if many pages are read one after another. */
const largePageSize = 500;
/**
 * Interval in milliseconds at which the page reads a run again that waits, or whose failed setup a person can debug, because such a run
 * can change without an event of the stream.
 */
const waitingMs = 3_000;
/** All events that arrive within this number of milliseconds cause only one read of the run. */
const refreshMs = 100;

export interface FollowedRun {
  readonly run: RunItem | undefined;
  readonly error: unknown;
  readonly timeline: readonly TimelineEvent[];
  /**
   * The entries of the conversation. They change often while events arrive, so only the component of the conversation subscribes to them.
   */
  readonly story: Story;
  /** The reason why the conversation cannot be shown; undefined if it can be shown. */
  readonly storyError: unknown;
  readonly isReading: boolean;
  readonly status: StreamStatus;
  /** Reads the page before the oldest entry. */
  readonly readOlder: () => Promise<void>;
  /** Reads older pages until the entry with an event of this number is loaded. */
  readonly readTo: (seq: number) => Promise<void>;
  /** Reads the run again, for example after an action of this page. */
  readonly refresh: () => Promise<void>;
}

/** Reads a run and keeps it current while the component is mounted. */
export function useRun(runId: string): FollowedRun {
  const session = useSession();
  const client = useClient();
  const queries = useQueryClient();
  const key = useMemo(() => ['run', session.team.uid, runId], [session.team.uid, runId]);
  const run = useRead(key, (client) => client.getRun({ params: { runId } }), {
    refetchInterval: ({ state: { data } }) =>
      data === undefined ||
      data.state === 'INPROGRESS' ||
      (isTerminal(data.state) && !data.status_message?.session_debug_until)
        ? slowMs
        : waitingMs,
  });
  const [story, setStory] = useState(() => new Story());
  const [timeline, setTimeline] = useState<readonly TimelineEvent[]>([]);
  const [status, setStatus] = useState<StreamStatus>({ kind: 'connecting' });
  const [storyError, setStoryError] = useState<unknown>();
  const [isReading, setReading] = useState(true);

  const refresh = useCallback(async () => await queries.invalidateQueries({ queryKey: key }), [queries, key]);
  const refreshSoon = useSoon(() => void refresh(), refreshMs);

  useEffect(() => {
    const controller = new AbortController();
    const { signal } = controller;
    const recordTime = () => queries.getQueryData<RunItem>(key)?.updated_at;
    /**
     * Reads the newest page of the conversation and the timeline, and then follows the live events. Never resolves, and rejects with an
     * error.
     */
    const follow = async (): Promise<never> => {
      const fresh = new Story();
      const seen = new Set<string>();
      const addTimeline = (events: readonly TimelineEvent[]) => {
        const added = events.filter(({ event_uuid: uuid }) => !seen.has(uuid));
        for (const { event_uuid: uuid } of added) seen.add(uuid);
        if (added.length > 0) setTimeline((earlier) => [...earlier, ...added]);
      };
      setStory(fresh);
      setTimeline([]);
      setStoryError(undefined);
      setReading(true);
      const page = await client.listRunMessages({ params: { runId }, query: { limit: pageSize }, signal });
      fresh.prepend(page);
      setReading(false);
      let lastEventId = page.reached;
      // The page and the stream, which begins after the page, must leave no gap in the timeline. So read the timeline after the page.
      addTimeline((await client.getRunTimeline({ params: { runId }, signal })).events);
      // The run may have changed between the read of its record and the first event of the stream. So read the record after each opening.
      const onStatus = (next: StreamStatus) => {
        setStatus(next);
        if (next.kind === 'live') refreshSoon();
      };
      for (;;) {
        const readAt = recordTime();
        for await (const { id, event } of followRun(session, runId, { lastEventId, signal, onStatus })) {
          lastEventId = id;
          if (event.type === 'conversation') fresh.add(event.event);
          else if (event.type === 'timeline') addTimeline([event.event]);
          if (event.type !== 'conversation' || event.event.type === 'blocked' || event.event.type === 'decided')
            refreshSoon();
        }
        // The stream ends when the run has ended. Wait until the record of the run changes, because a message may continue the run.
        await until(() => recordTime() !== readAt);
      }
    };
    /** Waits until `isTrue` returns true. Checks it after each change in the cache of queries. */
    const until = (isTrue: () => boolean): Promise<void> =>
      new Promise((resolve, reject) => {
        const check = () => {
          if (isTrue()) end(resolve);
        };
        const leave = () => end(() => reject(signal.reason));
        const end = (settle: () => void) => {
          unsubscribe();
          signal.removeEventListener('abort', leave);
          settle();
        };
        const unsubscribe = queries.getQueryCache().subscribe(check);
        signal.addEventListener('abort', leave);
        check();
      });
    const start = async (): Promise<void> => {
      try {
        await follow();
      } catch (error) {
        if (signal.aborted) return;
        // Read everything again soon if the service does not answer now, or if it has already deleted events that the page has not
        // received. Any other error may pass too, for example when the person gets another role.
        const isSoon = error instanceof EventsGoneError || isPassing(error);
        retryTimer = setTimeout(() => void start(), isSoon ? 2000 : slowMs);
        if (isSoon) return;
        setStoryError(error);
        setReading(false);
      }
    };
    let retryTimer: ReturnType<typeof setTimeout> | undefined;
    void start();
    return () => {
      clearTimeout(retryTimer);
      controller.abort();
    };
  }, [client, session, runId, queries, key, refreshSoon]);

  const older = useRef<{ readonly before: string; readonly read: Promise<void> } | undefined>(undefined);
  const readPage = useCallback(
    async (limit: number) => {
      const before = story.view().older;
      if (before === undefined) return;
      // A second request for the same page waits for the first, because the page must not be added twice.
      if (older.current?.before !== before)
        older.current = {
          before,
          read: client.listRunMessages({ params: { runId }, query: { limit, before } }).then(story.prepend.bind(story)),
        };
      try {
        await older.current.read;
      } finally {
        older.current = undefined;
      }
    },
    [story, client, runId],
  );
  const readOlder = useCallback(() => readPage(pageSize), [readPage]);
  const readTo = useCallback(
    async (seq: number) => {
      while (story.view().older !== undefined && story.find(seq) === undefined) await readPage(largePageSize);
    },
    [story, readPage],
  );

  return {
    run: run.data,
    error: run.error,
    timeline,
    story,
    storyError,
    isReading,
    status,
    readOlder,
    readTo,
    refresh,
  };
}
