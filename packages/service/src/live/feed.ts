/**
 * A feed is one ordered sequence of events, and the streams that are read from it. What is new is read once and written
 * to all streams; a stream that is behind what the feed has at hand reads pages of its own until it has caught up.
 * `P` is a position in the sequence: what is up to it was given, what is behind it was not.
 */
import { endBytes, type Frame } from './frame.ts';

/** A part of the sequence, as of one moment. */
export interface Page<P> {
  readonly frames: readonly Frame<P>[];
  /** All events behind the asked position up to this one are in `frames`. */
  readonly upTo: P;
  /** Events behind this position are all kept. */
  readonly keptAfter: P;
  /** Nothing was behind `upTo` at that moment. */
  readonly isLast: boolean;
  /** … and nothing will be, as far as it is known. */
  readonly hasEnded: boolean;
}

/** Where a stream's bytes go. */
export interface Outlet {
  /** False: it is full; nothing is written until `drained` was told. */
  write(bytes: Buffer): boolean;
  /** Ends in good order. */
  end(): void;
  /** Cuts the connection: its reader comes back with its last id. */
  cut(): void;
}

/** What differs between the kinds of feeds; `key` names one of them. */
export interface Source<P> {
  compare(a: P, b: P): number;
  /** A page behind `after`; `gone`: the sequence was deleted. Does not fail: it waits until the database answers. */
  read(key: string, after: P): Promise<Page<P> | 'gone'>;
  /** Written where nothing else was for a while. */
  heartbeat(position: P): Buffer;
  /** The feed's last stream has left. */
  emptied(key: string): void;
}

export interface Stream<P> {
  readonly feed: Feed<P>;
  readonly outlet: Outlet;
  /** Up to here events may be missing: it began after they were deleted. */
  readonly floor: P;
  /** It ends here, at the latest; absent: it follows. */
  readonly until?: P;
  position: P;
  isReading: boolean;
  /** Since when its outlet is full, as `performance.now()`; null: it takes more. */
  fullSince: number | null;
  /** Something was written since the last heartbeat was due. */
  isLively: boolean;
}

export interface Feed<P> {
  readonly key: string;
  readonly source: Source<P>;
  readonly streams: Set<Stream<P>>;
  /** The latest frames, for streams that are a little behind: all of those between `tailFrom` and `upTo`. */
  tail: readonly Frame<P>[];
  tailFrom: P;
  upTo: P;
  hasEnded: boolean;
}

const maxTailFrames = 100;
const maxTailBytes = 64 * 1024;

/** A feed of which nothing is known behind `upTo`. */
export function makeFeed<P>(source: Source<P>, key: string, upTo: P): Feed<P> {
  return { key, source, streams: new Set(), tail: [], tailFrom: upTo, upTo, hasEnded: false };
}

/** Adds a stream that was given everything up to `position`. */
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
  // What the feed knows of its end may be older than what made it go on.
  feed.hasEnded = false;
  advance(stream);
  return stream;
}

/** The stream's reader is gone. */
export function leave<P>(stream: Stream<P>): void {
  const { feed } = stream;
  if (feed.streams.delete(stream) && feed.streams.size === 0) feed.source.emptied(feed.key);
}

/** All was given. */
function finish<P>(stream: Stream<P>): void {
  leave(stream);
  stream.outlet.write(endBytes);
  stream.outlet.end();
}

/** All was given that it asked for. */
const isDone = <P>({ feed, position, until }: Stream<P>): boolean =>
  until !== undefined && feed.source.compare(position, until) >= 0;

/** Nothing more is given here: the sequence is gone, or the process stops. */
export function end<P>(stream: Stream<P>): void {
  leave(stream);
  stream.outlet.end();
}

/** The reader cannot have all of it on this connection: its next one is told why, or goes on. */
export function cut<P>(stream: Stream<P>): void {
  leave(stream);
  stream.outlet.cut();
}

/** Takes what was read behind `feed.upTo`, and gives it to the streams. */
export function publish<P>(feed: Feed<P>, page: Page<P>): void {
  const { compare } = feed.source;
  feed.hasEnded = page.hasEnded;
  if (compare(page.upTo, feed.upTo) > 0) {
    const isWhole = compare(page.keptAfter, feed.upTo) <= 0;
    feed.tail = isWhole ? [...feed.tail, ...framesAfter(feed, page.frames, feed.upTo)] : [];
    if (!isWhole) feed.tailFrom = page.upTo;
    feed.upTo = page.upTo;
  }
  // Most streams are at the same position: what they get is put together once.
  const joined = new Map<P, Buffer>();
  for (const stream of feed.streams) advance(stream, joined);
  trimTail(feed);
}

function trimTail<P>(feed: Feed<P>): void {
  // A lone stream that takes what it gets needs no tail.
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

/** Gives a stream what it lacks, as far as its outlet takes it. */
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

/** The outlet takes more again. */
export function drained<P>(stream: Stream<P>): void {
  stream.fullSince = null;
  advance(stream);
}
