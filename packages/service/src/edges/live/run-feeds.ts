/** The feeds of the runs with streams in this process: one feed for each run. */
import type { ExecutionDeps } from '../../runs/executions/deps.ts';
import { cut, end, type Feed, join, makeFeed, type Outlet, publish, type Source, type Stream } from './feed.ts';
import { heartbeatBytes } from './frame.ts';
import { afterRow, type RunPosition, readRunPages, rowOf } from './run-events.ts';
import { sharedReads } from './shared-reads.ts';

/** One read of new events returns at most `newsRows` rows for each run, and reads at most `newsRuns` runs. */
const newsRows = 50;
const newsRuns = 100;
/** One read for late streams returns a page of at most `pageRows` rows for each stream, and reads for at most `pageStreams` streams. */
const pageRows = 200;
const pageStreams = 10;

/** The start position of a stream of a run. */
export interface RunStart {
  readonly runId: string;
  readonly position: RunPosition;
  /** Events up to this position may be missing. */
  readonly floor: RunPosition;
  /** The last position of the stream; absent: it continues with new events. */
  readonly until?: RunPosition;
  /** Number of the last known row of the run. */
  readonly lastSeq: number;
}

export interface RunFeeds {
  open(start: RunStart, outlet: Outlet): Stream<RunPosition>;
  stop(): void;
}

/** Opens the run feeds of this process. They use at most two connections of the pool. */
export function openRunFeeds({ db, log, notices }: Pick<ExecutionDeps, 'db' | 'log' | 'notices'>): RunFeeds {
  const feeds = new Map<string, Feed<RunPosition>>();
  /** The functions that end the notices for each feed. */
  const unsubscribes = new Map<string, () => void>();
  const reads = (rows: number, limit: number) =>
    sharedReads<{ runId: string; after: number }, Awaited<ReturnType<typeof readRunPages>>[number]>({
      limit,
      nameOf: ({ runId, after }) => `${runId} ${after}`,
      read: (questions) => readRunPages(db, questions, rows),
      onFailure: (error) => log.warn({ err: error }, 'reading the events of runs failed; trying again'),
    });
  // Two queues, so that new events do not wait behind old pages.
  const news = reads(newsRows, newsRuns);
  const pages = reads(pageRows, pageStreams);

  const source: Source<RunPosition> = {
    compare: (a, b) => a - b,
    read: (runId, after) => pages.ask({ runId, after: rowOf(after) }),
    heartbeat: () => heartbeatBytes,
    emptied: (runId) => {
      feeds.delete(runId);
      unsubscribes.get(runId)?.();
      unsubscribes.delete(runId);
    },
  };

  const reading = new Set<Feed<RunPosition>>();
  /** Feeds with a notice that arrived after their last read began. */
  const withNews = new Set<Feed<RunPosition>>();

  async function readNews(feed: Feed<RunPosition>): Promise<void> {
    withNews.add(feed);
    if (reading.has(feed)) return;
    reading.add(feed);
    try {
      while (withNews.delete(feed) && feed.streams.size > 0) {
        const page = await news.ask({ runId: feed.key, after: rowOf(feed.upTo) });
        if (page === 'gone') for (const stream of [...feed.streams]) end(stream);
        else {
          publish(feed, page);
          if (!page.isLast) withNews.add(feed);
        }
      }
    } catch (error) {
      // Cut the streams, because this feed would receive no further events. The readers connect again and continue.
      log.error({ err: error, run_id: feed.key }, 'live streams of a run broke');
      for (const stream of [...feed.streams]) cut(stream);
    } finally {
      reading.delete(feed);
    }
  }

  const feedOf = ({ runId, position, lastSeq }: RunStart): Feed<RunPosition> => {
    const known = feeds.get(runId);
    if (known) return known;
    // If the first stream has missed only a few events, the feed begins at the position of the stream.
    const from = lastSeq - rowOf(position) <= newsRows ? rowOf(position) : lastSeq;
    const feed = makeFeed(source, runId, afterRow(from));
    feeds.set(runId, feed);
    unsubscribes.set(
      runId,
      notices.onRun(runId, () => void readNews(feed)),
    );
    return feed;
  };

  return {
    open: (start, outlet) => {
      const stream = join(feedOf(start), { ...start, outlet });
      void readNews(stream.feed);
      return stream;
    },
    stop: () => {
      for (const feed of [...feeds.values()]) for (const stream of [...feed.streams]) end(stream);
      news.close();
      pages.close();
    },
  };
}
