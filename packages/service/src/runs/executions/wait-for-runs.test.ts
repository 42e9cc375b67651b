import { EventEmitter } from 'node:events';
import { expect, test } from 'vitest';
import { waitForRuns } from './wait-for-runs.ts';

/** Makes notices that the test sends itself. */
function fakeNotices() {
  const emitter = new EventEmitter();
  return {
    emitter,
    onRun: (runId: string, listener: () => void) => {
      emitter.on(runId, listener);
      return () => void emitter.off(runId, listener);
    },
  };
}

test('`waitForRuns` returns the result of the first read without a pause', async () => {
  const notices = fakeNotices();
  expect(await waitForRuns(notices, { runIds: () => ['a'], waitMs: 0 }, async () => 'found')).toBe('found');
  expect(notices.emitter.eventNames()).toEqual([]);
});

test('`waitForRuns` reads again if a notice arrives during a read', async () => {
  const notices = fakeNotices();
  let looks = 0;
  const look = async () => {
    looks += 1;
    if (looks === 1) notices.emitter.emit('a');
    return looks === 2 ? 'found' : undefined;
  };
  expect(await waitForRuns(notices, { runIds: () => ['a'], waitMs: 60_000 }, look)).toBe('found');
});

test('`waitForRuns` reads once for all notices that arrive within the minimum time between two reads', async () => {
  const notices = fakeNotices();
  let looks = 0;
  const look = async () => {
    looks += 1;
    return looks === 2 ? 'found' : undefined;
  };
  const beforePause = async () => {
    for (let sent = 0; sent < 3; sent += 1) notices.emitter.emit('a');
  };
  const began = performance.now();
  expect(await waitForRuns(notices, { runIds: () => ['a'], waitMs: 60_000, restMs: 40, beforePause }, look)).toBe(
    'found',
  );
  // Allow one millisecond less, because timers of Node may end up to a millisecond early.
  expect(performance.now() - began).toBeGreaterThan(38);
  expect(looks).toBe(2);
});

test('`waitForRuns` reads again at once when a read finds a further run, and then listens to that run', async () => {
  const notices = fakeNotices();
  const runIds: string[] = [];
  let looks = 0;
  let pauses = 0;
  const look = async () => {
    looks += 1;
    if (looks === 1) runIds.push('b');
    return looks === 3 ? 'found' : undefined;
  };
  const beforePause = async () => {
    pauses += 1;
    notices.emitter.emit('b');
  };
  expect(await waitForRuns(notices, { runIds: () => runIds, waitMs: 60_000, beforePause }, look)).toBe('found');
  expect([looks, pauses]).toEqual([3, 1]);
});

test('`waitForRuns` returns undefined when the maximum time has passed or the signal aborts', async () => {
  const notices = fakeNotices();
  const nothing = async () => undefined;
  expect(await waitForRuns(notices, { runIds: () => ['a'], waitMs: 5 }, nothing)).toBeUndefined();
  const ending = new AbortController();
  const beforePause = async () => ending.abort();
  const wait = { runIds: () => ['a'], waitMs: 60_000, signal: ending.signal, beforePause };
  expect(await waitForRuns(notices, wait, nothing)).toBeUndefined();
  expect(notices.emitter.eventNames()).toEqual([]);
});
