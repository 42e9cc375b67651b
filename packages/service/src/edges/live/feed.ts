/**
 * A feed is one ordered sequence of events with the streams that read it. New events are read once and written to all streams. A stream
 * that is further behind than the feed's newest events reads its own pages until it has caught up. `P` is a position in the sequence: a
 * stream at a position has got all events up to this position, and no later event.
 */
import { endBytes, type Frame } from './frame.ts';

/** A part of the sequence, read in one snapshot. */
export interface Page<P> {
  readonly frames: readonly Frame<P>[];
  /** `frames` contains all events from the requested position up to this position. */
  readonly upTo: P;
  /** No event after this position was deleted. */
  readonly keptAfter: P;
  /** True: no event existed after `upTo`. */
  readonly isLast: boolean;
  /** True: no event existed after `upTo`, and no further event is expected. */
  readonly hasEnded: boolean;
}

/** The connection to the reader of a stream. */
export interface Outlet {
  /** Writes bytes. Returns false if the outlet is full, and the next write must wait for `drained`. */
  write(bytes: Buffer): boolean;
  end(): void;
  /** Cuts the connection. The reader connects again with its last id. */
  cut(): void;
}

/** The parts that differ between feeds of runs and of teams. `key` is the id of the run or team. */
export interface Source<P> {
  compare(a: P, b: P): number;
  /** Reads the page after `after`. `gone`: the sequence was deleted. Never fails, but waits until the database answers. */
  read(key: string, after: P): Promise<Page<P> | 'gone'>;
  /** Returns the bytes that keep a stream alive after a time without events. */
  heartbeat(position: P): Buffer;
  /** Called when the last stream of a feed has left. */
  emptied(key: string): void;
}

export interface Stream<P> {
  readonly feed: Feed<P>;
  readonly outlet: Outlet;
  /** Events up to this position may be missing: they were deleted before the stream began. */
  readonly floor: P;
  /** Last position of the stream; absent: it continues with new events. */
  readonly until?: P;
  position: P;
  isReading: boolean;
  /** Time, `performance.now()`, at which the outlet became full or was ended; null: the outlet accepts bytes. */
  fullSince: number | null;
  /** True: bytes were written since the last heartbeat was due. */
  isLively: boolean;
}

export interface Feed<P> {
  readonly key: string;
  readonly source: Source<P>;
  readonly streams: Set<Stream<P>>;
  /** All frames between `tailFrom` and `upTo`, for streams that are a little behind. */
  tail: readonly Frame<P>[];
  tailFrom: P;
  upTo: P;
  hasEnded: boolean;
}

const maxTailFrames = 100;
const maxTailBytes = 64 * 1024;

/** Makes a feed that has read its sequence up to `upTo`. */
export function makeFeed<P>(source: Source<P>, key: string, upTo: P): Feed<P> {
  return { key, source, streams: new Set(), tail: [], tailFrom: upTo, upTo, hasEnded: false };
}

/** Adds a stream that begins after `position`. */
export function join<P>(feed: Feed<P>, start: Pick<Stream<P>, 'position' | 'floor' | 'until' | 'outlet'>): Stream<P> {
  const { position, floor, until, outlet } = start;
  const stream: Stream<P> = {
    feed,
    outlet,
    floor,
    ...(until === undefined ? {} : { until }),
    position,
    isReading: false,
    fullSince: null,
    isLively: true,
  };
  feed.streams.add(stream);
  // The feed may have learned that the sequence had ended, but the sequence may have continued since then.
  feed.hasEnded = false;
  advance(stream);
  return stream;
}

/** Removes a stream whose reader is gone. */
export function leave<P>(stream: Stream<P>): void {
  const { feed } = stream;
  if (feed.streams.delete(stream) && feed.streams.size === 0) feed.source.emptied(feed.key);
}

/** Ends a stream that got all events. */
function finish<P>(stream: Stream<P>): void {
  stream.outlet.write(endBytes);
  end(stream);
}

/** Returns whether the stream has reached its `until`. */
const isDone = <P>({ feed, position, until }: Stream<P>): boolean =>
  until !== undefined && feed.source.compare(position, until) >= 0;

/**
 * Ends a stream. This may be early, if the sequence was deleted or the process stops. A reader that does not read the remaining bytes is
 * disconnected.
 */
export function end<P>(stream: Stream<P>): void {
  leave(stream);
  stream.fullSince ??= performance.now();
  stream.outlet.end();
}

/**
 * Cuts a stream that cannot continue without a gap. The reader connects again, and its new stream continues or answers with the reason why
 * it cannot continue.
 */
export function cut<P>(stream: Stream<P>): void {
  leave(stream);
  stream.outlet.cut();
}

/** Adds the page that begins after `feed.upTo` to the feed, and writes the page to the streams. */
export function publish<P>(feed: Feed<P>, page: Page<P>): void {
  const { compare } = feed.source;
  feed.hasEnded = page.hasEnded;
  if (compare(page.upTo, feed.upTo) > 0) {
    const isWhole = compare(page.keptAfter, feed.upTo) <= 0;
    feed.tail = isWhole ? [...feed.tail, ...framesAfter(feed, page.frames, feed.upTo)] : [];
    if (!isWhole) feed.tailFrom = page.upTo;
    feed.upTo = page.upTo;
  }
  // Most streams are at the same position, so the bytes for each position are joined only once.
  const joined = new Map<P, Buffer>();
  for (const stream of feed.streams) advance(stream, joined);
  trimTail(feed);
}

function trimTail<P>(feed: Feed<P>): void {
  // The tail serves streams that are behind the others, so a single stream needs none.
  const limit = feed.streams.size > 1 ? maxTailBytes : 0;
  let bytes = feed.tail.reduce((sum, frame) => sum + frame.bytes.length, 0);
  let from = 0;
  for (const frame of feed.tail) {
    if (bytes <= limit && feed.tail.length - from <= maxTailFrames) break;
    bytes -= frame.bytes.length;
    feed.tailFrom = frame.at;
    from += 1;
  }
  if (from > 0) feed.tail = feed.tail.slice(from);
  if (feed.tail.length === 0) feed.tailFrom = feed.upTo;
}

/** Writes the missing events to a stream until its outlet is full. */
function advance<P>(stream: Stream<P>, joined?: Map<P, Buffer>): void {
  const { feed } = stream;
  const { compare } = feed.source;
  if (stream.isReading || stream.fullSince !== null || !feed.streams.has(stream)) return;
  if (compare(stream.position, feed.upTo) < 0) {
    if (compare(stream.position, feed.tailFrom) < 0) {
      void readOwnPage(stream);
      return;
    }
    const bytes = joined?.get(stream.position) ?? bytesAfter(feed, feed.tail, stream.position);
    joined?.set(stream.position, bytes);
    give(stream, bytes, feed.upTo);
  }
  if ((feed.hasEnded || isDone(stream)) && stream.fullSince === null) finish(stream);
}

const framesAfter = <P>({ source }: Feed<P>, frames: readonly Frame<P>[], position: P): readonly Frame<P>[] =>
  frames.filter((frame) => source.compare(frame.at, position) > 0);

const bytesAfter = <P>(feed: Feed<P>, frames: readonly Frame<P>[], position: P): Buffer =>
  Buffer.concat(framesAfter(feed, frames, position).map((frame) => frame.bytes));

function give<P>(stream: Stream<P>, bytes: Buffer, upTo: P): void {
  stream.position = upTo;
  if (bytes.length === 0) return;
  stream.isLively = true;
  if (!stream.outlet.write(bytes)) stream.fullSince = performance.now();
}

async function readOwnPage<P>(stream: Stream<P>): Promise<void> {
  const { feed, position: after, floor } = stream;
  const { compare, read } = feed.source;
  stream.isReading = true;
  const page = await read(feed.key, after);
  stream.isReading = false;
  if (!feed.streams.has(stream)) return;
  if (page === 'gone') {
    end(stream);
    return;
  }
  if (compare(page.keptAfter, after) > 0 && compare(page.keptAfter, floor) > 0) {
    cut(stream);
    return;
  }
  give(stream, bytesAfter(feed, page.frames, after), compare(page.upTo, after) > 0 ? page.upTo : after);
  if ((page.hasEnded || isDone(stream)) && stream.fullSince === null) finish(stream);
  else advance(stream);
}

/** Continues a stream whose outlet is no longer full. */
export function drained<P>(stream: Stream<P>): void {
  if (!stream.feed.streams.has(stream)) return;
  stream.fullSince = null;
  advance(stream);
}
