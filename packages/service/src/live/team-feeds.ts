/** The feeds of the teams that are followed here. What is new is read once for all of them, in the order of `run_events.xact`. */

import { setTimeout as delay } from 'node:timers/promises';
import { backoffMs } from '@runyard/contract/backoff';
import type { Engine } from '../executions/engine.ts';
import { ensureEpoch } from './epoch.ts';
import { cut, end, type Feed, join, makeFeed, type Outlet, publish, type Source, type Stream } from './feed.ts';
import { idBytes } from './frame.ts';
import { sharedReads } from './shared-reads.ts';
import { pageOfTeam, readForeignTransactions, readTeamNews, readTeamPlace, type TeamNews } from './team-events.ts';
import { beforeTransaction, compareTeamPositions, parseTeamId, type TeamPosition, teamIdOf } from './team-position.ts';

/** Between two reads of what is new: notices that come in between share the next. */
const pauseMs = 10;
/** While events are held back by a transaction that goes on: how soon it is looked again, at first and at most. */
const heldBackMs = 50;
const maxHeldBackMs = 1_000;
/** Held back for so long, it is asked whether the transaction is another database's. */
const foreignAfterMs = 200;
/** Transactions of other databases are not asked for more often where a stream begins. */
const foreignAgeMs = 1_000;
const maxFailureMs = 2_000;

/** Where a stream begins; `unknown` 400: no id of a team's stream; `gone` 410: of another epoch, or too old. */
export type TeamStart =
  | { readonly kind: 'at'; readonly position: TeamPosition; readonly now: TeamPosition }
  | { readonly kind: 'unknown' }
  | { readonly kind: 'gone' };

export interface TeamFeeds {
  /** Place of an id; without one: now. */
  find(lastId: string | undefined): Promise<TeamStart>;
  open(teamId: string, start: Extract<TeamStart, { kind: 'at' }>, outlet: Outlet): Stream<TeamPosition>;
  idOf(position: TeamPosition): string;
  /** Reads as if there was a notice. */
  poll(): void;
  stop(): void;
}

/** Opens the room. It reads with two connections of the pool at most. */
export async function openTeamFeeds({ db, log, notices }: Pick<Engine, 'db' | 'log' | 'notices'>): Promise<TeamFeeds> {
  let epoch = await ensureEpoch(db);
  const feeds = new Map<string, Feed<TeamPosition>>();
  let readTo = beforeTransaction(0);
  let foreign: readonly number[] = [];
  let foreignReadAt = Number.NEGATIVE_INFINITY;
  let isReading = false;
  let hasNews = false;
  let isStopped = false;

  const onFailure = (error: unknown) => log.warn({ err: error }, 'reading the events of teams failed; trying again');
  const pages = sharedReads<TeamPosition, TeamNews>({
    limit: 1,
    nameOf: (position) => teamIdOf(epoch, position),
    read: async (positions) => await Promise.all(positions.map((after) => readTeamNews(db, epoch, after, foreign))),
    onFailure,
  });

  const source: Source<TeamPosition> = {
    compare: compareTeamPositions,
    read: async (teamId, after) => pageOfTeam(await pages.ask(after), teamId),
    heartbeat: (position) => idBytes(teamIdOf(epoch, position)),
    emptied: (teamId) => void feeds.delete(teamId),
  };

  async function readForeign(): Promise<void> {
    foreign = await readForeignTransactions(db);
    foreignReadAt = performance.now();
  }

  /** Gives how long to wait before it is read again without a notice; null: not at all. */
  async function readOnce(heldBackFor: number): Promise<number | null> {
    if (heldBackFor > foreignAfterMs) await readForeign();
    const after = readTo;
    const news = await readTeamNews(db, epoch, after, foreign);
    // The last stream has left meanwhile, and another one came, which begins elsewhere.
    if (readTo !== after) return 0;
    if (compareTeamPositions(news.upTo, after) > 0) {
      for (const [teamId, feed] of feeds) publish(feed, pageOfTeam(news, teamId));
      readTo = news.upTo;
    }
    if (!news.isLast) return 0;
    return news.isHeldBack ? Math.min(heldBackMs + heldBackFor / 4, maxHeldBackMs) : null;
  }

  async function readNews(): Promise<void> {
    hasNews = true;
    if (isReading) return;
    isReading = true;
    let heldBackFor = 0;
    let failures = 0;
    while (hasNews && feeds.size > 0 && !isStopped) {
      hasNews = false;
      let waitMs: number | null;
      try {
        waitMs = await readOnce(heldBackFor);
        failures = 0;
      } catch (error) {
        onFailure(error);
        failures += 1;
        waitMs = backoffMs({ firstMs: 2 * heldBackMs, longestMs: maxFailureMs }, failures);
      }
      const isWaiting = waitMs !== null && waitMs > 0;
      const pause = Math.max(waitMs ?? 0, pauseMs);
      heldBackFor = isWaiting ? heldBackFor + pause : 0;
      hasNews ||= waitMs !== null;
      await delay(pause, undefined, { ref: false });
    }
    isReading = false;
  }

  /** After an outage the server may be another one. */
  async function checkEpoch(): Promise<void> {
    const now = await ensureEpoch(db);
    if (now === epoch) return;
    epoch = now;
    for (const feed of [...feeds.values()]) for (const stream of [...feed.streams]) cut(stream);
  }

  const unsubscribe = [
    notices.onAnyRun((runId) => {
      if (runId === null) checkEpoch().catch(onFailure);
      void readNews();
    }),
    // A create tells only the queue.
    notices.onQueue(() => void readNews()),
  ];

  return {
    find: async (lastId) => {
      const parsed = lastId === undefined ? null : parseTeamId(lastId);
      if (lastId !== undefined && !parsed) return { kind: 'unknown' };
      if (parsed && parsed.epoch !== epoch) return { kind: 'gone' };
      // "Now" is behind the last transaction of this database, not of another's that goes on for an hour.
      if (!parsed && performance.now() - foreignReadAt > foreignAgeMs) await readForeign();
      const { horizon, next, keptAfter } = await readTeamPlace(db, foreign);
      const now = beforeTransaction(horizon);
      const position = parsed?.position ?? now;
      if (position.xact > next) return { kind: 'unknown' };
      return position.xact < keptAfter ? { kind: 'gone' } : { kind: 'at', position, now };
    },
    open: (teamId, { position, now }, outlet) => {
      // The first stream here: what was read for others before is long ago.
      if (feeds.size === 0) readTo = now;
      const feed = feeds.get(teamId) ?? makeFeed(source, teamId, readTo);
      feeds.set(teamId, feed);
      const stream = join(feed, { position, floor: position, outlet });
      void readNews();
      return stream;
    },
    idOf: (position) => teamIdOf(epoch, position),
    poll: () => void readNews(),
    stop: () => {
      isStopped = true;
      for (const stop of unsubscribe) stop();
      for (const feed of [...feeds.values()]) for (const stream of [...feed.streams]) end(stream);
      pages.close();
    },
  };
}
