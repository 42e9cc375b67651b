import { expect, test } from 'vitest';
import { drained, join, makeFeed, type Page, publish, type Source } from './feed.ts';

/** Makes a feed of the numbers 1, 2, …. `asked` records the requested pages. */
function sequence(pageSize = 3) {
  let last = 0;
  let keptAfter = 0;
  let hasEnded = false;
  const asked: number[] = [];
  const page = (after: number, size: number): Page<number> => {
    const upTo = Math.min(last, after + size);
    const frames = Array.from({ length: upTo - after }, (_, n) => ({
      at: after + n + 1,
      bytes: Buffer.from(`${after + n + 1},`),
    }));
    return { frames, upTo, keptAfter, isLast: upTo === last, hasEnded: hasEnded && upTo === last };
  };
  const source: Source<number> = {
    compare: (a, b) => a - b,
    read: async (_, after) => {
      asked.push(after);
      return page(after, pageSize);
    },
    heartbeat: () => Buffer.from('♥'),
    emptied: () => undefined,
  };
  const feed = makeFeed(source, 'numbers', 0);
  return {
    asked,
    feed,
    add: (count: number, { end = false } = {}) => {
      last += count;
      hasEnded = end;
      publish(feed, page(feed.upTo, count));
    },
    deleteUpTo: (seq: number) => {
      keptAfter = seq;
    },
  };
}

/** Adds a stream whose outlet accepts everything, or with `isSlow` is full after each write. */
function reader(feed: ReturnType<typeof sequence>['feed'], options: { position?: number; isSlow?: boolean } = {}) {
  const got = { text: '', end: '', writes: 0 };
  const stream = join(feed, {
    position: options.position ?? 0,
    floor: 0,
    outlet: {
      write: (bytes) => {
        got.text += String(bytes);
        got.writes += 1;
        return !options.isSlow;
      },
      end: () => {
        got.end = 'end';
      },
      cut: () => {
        got.end = 'cut';
      },
    },
  });
  return { got, stream };
}

const numbers = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, index) => `${from + index},`).join('');
/** Events that are read from memory arrive within a few turns of the event loop. */
const settle = () => new Promise((resolve) => setImmediate(() => setImmediate(resolve)));

test('a feed writes the bytes of one read to all streams', async () => {
  const { feed, add, asked } = sequence();
  const all = Array.from({ length: 5 }, () => reader(feed).got);
  add(4);
  add(2);
  for (const got of all) expect(got.text).toBe(numbers(1, 6));
  expect(asked).toEqual([]);
});

test('a feed lets a stream with a full outlet read its own pages later, and does not delay the other streams', async () => {
  const { feed, add, asked } = sequence();
  const slow = reader(feed, { isSlow: true });
  const quick = reader(feed);
  for (let n = 0; n < 1000; n += 1) add(10);
  expect(quick.got.text).toBe(numbers(1, 10_000));
  expect(slow.got).toMatchObject({ writes: 1, text: numbers(1, 10) });
  expect(asked).toEqual([]);
  for (let n = 2; n <= 4; n += 1) {
    drained(slow.stream);
    await settle();
    expect(slow.got.writes).toBe(n);
  }
  expect(slow.got.text).toBe(numbers(1, 19));
  expect(asked).toEqual([10, 13, 16]);
});

test('a feed keeps a limited number of its newest events for late streams, and keeps none if it has only one stream', () => {
  const { feed, add } = sequence();
  const first = reader(feed);
  add(500);
  expect(feed.tail).toHaveLength(0);
  reader(feed, { position: feed.upTo });
  for (let n = 0; n < 100; n += 1) add(50);
  expect(feed.tail.length).toBeLessThanOrEqual(100);
  expect(first.got.text).toBe(numbers(1, 5_500));
});

test('a feed sends the newest events to a slightly late stream, and lets a very late stream read its own pages', async () => {
  const { feed, add, asked } = sequence();
  reader(feed);
  reader(feed);
  for (let n = 0; n < 30; n += 1) add(10);
  const near = reader(feed, { position: 290 });
  expect(near.got.text).toBe(numbers(291, 300));
  expect(asked).toEqual([]);
  const far = reader(feed, { position: 150 });
  add(5);
  for (let n = 0; n < 80; n += 1) await settle();
  add(5);
  expect(far.got.text).toBe(numbers(151, 310));
  expect(near.got.text).toBe(numbers(291, 310));
  expect(asked.length).toBeGreaterThan(1);
});

test('a feed ends a stream only after the stream got all events', async () => {
  const { feed, add } = sequence();
  const slow = reader(feed, { isSlow: true });
  const quick = reader(feed);
  add(2);
  add(5, { end: true });
  expect(quick.got).toMatchObject({ text: `${numbers(1, 7)}: end\n\n`, end: 'end' });
  for (let n = 0; n < 4; n += 1) {
    drained(slow.stream);
    await settle();
  }
  expect(slow.got).toMatchObject({ text: `${numbers(1, 7)}: end\n\n`, end: 'end' });
});

test('a feed cuts a stream whose next events were deleted', async () => {
  const { feed, add, deleteUpTo } = sequence();
  const quick = reader(feed);
  const slow = reader(feed, { isSlow: true });
  add(1);
  for (let n = 0; n < 30; n += 1) add(10);
  deleteUpTo(200);
  drained(slow.stream);
  await settle();
  expect(slow.got).toMatchObject({ text: numbers(1, 1), end: 'cut' });
  add(1);
  expect(quick.got.text).toBe(numbers(1, 302));
});
