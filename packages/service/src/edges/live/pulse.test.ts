import { expect, test } from 'vitest';
import { join, makeFeed, publish } from './feed.ts';
import { makePulse } from './pulse.ts';

const source = {
  compare: (a: number, b: number) => a - b,
  read: async () => 'gone' as const,
  heartbeat: (position: number) => Buffer.from(`at ${position}`),
  emptied: () => undefined,
};
const page = (seq: number) => ({
  frames: [{ at: seq, bytes: Buffer.from(`event ${seq}`) }],
  upTo: seq,
  keptAfter: 0,
  isLast: true,
  hasEnded: false,
});

function setUp(options: { stuckMs?: number; takes?: boolean } = {}) {
  const feed = makeFeed(source, 'k', 0);
  const seen: string[] = [];
  const outlet = {
    write: (bytes: Buffer) => {
      seen.push(String(bytes));
      return options.takes ?? true;
    },
    end: () => undefined,
    cut: () => void seen.push('cut'),
  };
  const pulse = makePulse(options);
  pulse.add(join(feed, { position: 0, floor: 0, outlet }));
  const round = () => {
    for (let n = 0; n < 15; n += 1) pulse.beat();
  };
  return { feed, seen, pulse, round };
}

test('the pulse sends one heartbeat to a stream that was quiet for 15 beats', () => {
  const { feed, seen, round } = setUp();
  // In the first round, no stream has been quiet for 15 beats yet.
  round();
  expect(seen).toEqual([]);
  round();
  expect(seen).toEqual(['at 0']);
  publish(feed, page(1));
  round();
  round();
  expect(seen).toEqual(['at 0', 'event 1', 'at 1']);
});

test('the pulse sends no heartbeat to a stream with a full outlet, and cuts a stream whose outlet stays full for too long', () => {
  const patient = setUp({ takes: false });
  publish(patient.feed, page(1));
  for (let n = 0; n < 3; n += 1) patient.round();
  expect(patient.seen).toEqual(['event 1']);
  const stuck = setUp({ takes: false, stuckMs: -1 });
  publish(stuck.feed, page(1));
  stuck.round();
  expect(stuck.seen).toEqual(['event 1', 'cut']);
  expect(stuck.feed.streams.size).toBe(0);
});

test('the pulse writes nothing to an ended stream, and cuts the stream if its remaining bytes are never read', () => {
  const read = setUp();
  publish(read.feed, { ...page(1), hasEnded: true });
  const all = [...read.seen];
  for (let n = 0; n < 3; n += 1) read.round();
  expect(read.seen).toEqual(all);
  const stuck = setUp({ stuckMs: -1 });
  publish(stuck.feed, { ...page(1), hasEnded: true });
  stuck.round();
  expect(stuck.seen).toEqual([...all, 'cut']);
});
