/** The feeds of the teams with streams in this process. New events are read once for all teams, in the order of their transactions. */

import { setTimeout as delay } from 'node:timers/promises';
import { backoffMs } from '@runyard/system/backoff';
import type { ExecutionDeps } from '../../runs/executions/deps.ts';
import { ensureEpoch } from './epoch.ts';
import { cut, end, type Feed, join, makeFeed, type Outlet, publish, type Source, type Stream } from './feed.ts';
import { idBytes } from './frame.ts';
import { sharedReads } from './shared-reads.ts';
import { pageOfTeam, readForeignTransactions, readTeamPlace, type TeamNews, type TeamSource } from './team-events.ts';
import { beforeTransaction, compareTeamPositions, parseTeamId, type TeamPosition, teamIdOf } from './team-position.ts';

/** Pause between two reads of new events. Notices in the pause share the next read. */
const pauseMs = 10;
/** First and longest pause while events cannot be read because an older transaction is open. */
const heldBackMs = 50;
const maxHeldBackMs = 1_000;
/** After this time the process asks whether the open transaction belongs to another database. */
const foreignAfterMs = 200;
/** A new stream uses the known transactions of other databases if they were read at most this long ago. */
const foreignAgeMs = 1_000;
const maxFailureMs = 2_000;

/**
 * The first position of a stream. `unknown` 400: the id is not from the stream of a team; `gone` 410: the id is of another epoch, or too
 * old.
 */
export type TeamStart =
  | { readonly kind: 'at'; readonly position: TeamPosition; readonly now: TeamPosition }
  | { readonly kind: 'unknown' }
  | { readonly kind: 'gone' };

export interface TeamFeeds {
  /** Finds the position of an id; without an id, the current position. */
  find(lastId: string | undefined): Promise<TeamStart>;
  open(teamId: string, start: Extract<TeamStart, { kind: 'at' }>, outlet: Outlet): Stream<TeamPosition>;
  idOf(position: TeamPosition): string;
  /** Reads new events even if no notice has arrived. */
  poll(): void;
  stop(): void;
}

/** Opens the team feeds of this process for one sequence of events. They use at most two connections of the pool. */
export async function openTeamFeeds(
  { db, log }: Pick<ExecutionDeps, 'db' | 'log'>,
  events: TeamSource,
): Promise<TeamFeeds> {
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
    read: async (positions) => await Promise.all(positions.map((after) => events.read(db, epoch, after, foreign))),
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

  /** Reads new events once. Returns the pause before the next read; null if the next read waits for a notice. */
  async function readOnce(heldBackFor: number): Promise<number | null> {
    if (heldBackFor > foreignAfterMs) await readForeign();
    const after = readTo;
    const news = await events.read(db, epoch, after, foreign);
    // During the read, the last stream may have ended, and a stream with another position may have begun. In this case, drop the answer.
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

  /** Cuts all streams if the database has a new epoch, because after an outage this process may be connected to another server. */
  async function checkEpoch(): Promise<void> {
    const now = await ensureEpoch(db);
    if (now === epoch) return;
    epoch = now;
    for (const feed of [...feeds.values()]) for (const stream of [...feed.streams]) cut(stream);
  }

  const unsubscribe = events.subscribe((areLost) => {
    if (areLost) checkEpoch().catch(onFailure);
    void readNews();
  });

  return {
    find: async (lastId) => {
      const parsed = lastId === undefined ? null : parseTeamId(lastId);
      if (lastId !== undefined && !parsed) return { kind: 'unknown' };
      if (parsed && parsed.epoch !== epoch) return { kind: 'gone' };
      // Read the transactions of other databases again, because a long transaction of another database must not hold back the current position.
      if (!parsed && performance.now() - foreignReadAt > foreignAgeMs) await readForeign();
      const { horizon, next, keptAfter } = await readTeamPlace(db, foreign);
      const now = beforeTransaction(horizon);
      const position = parsed?.position ?? now;
      if (position.xact > next) return { kind: 'unknown' };
      return position.xact < keptAfter ? { kind: 'gone' } : { kind: 'at', position, now };
    },
    open: (teamId, { position, now }, outlet) => {
      // `readTo` is old, because nothing is read while there is no stream.
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
      unsubscribe();
      for (const feed of [...feeds.values()]) for (const stream of [...feed.streams]) end(stream);
      pages.close();
    },
  };
}
