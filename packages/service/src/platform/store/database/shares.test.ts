import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, onTestFinished, test, vi } from 'vitest';
import { type Caller, makeShares, workFor, workForAll, workOf } from './shares.ts';
import { StoreUnavailable } from './unavailable.ts';

const key = (team: string | null, id: string): Caller => ({ team, id });

/** Starts works that end when the test says so. */
function flood(connections: number) {
  const shares = makeShares(connections);
  const running: { readonly by: string; readonly end: () => void }[] = [];
  // End the works that still wait. Otherwise they would fail in a later test.
  onTestFinished(async () => {
    while (running.length > 0) {
      for (const { end } of running.splice(0)) end();
      await nextTurn();
    }
    expect(shares.waiting).toBe(0);
  });
  const start = (caller: Caller, count = 1): void => {
    for (let n = 0; n < count; n += 1)
      void workOf(caller, () =>
        shares.hold(async () => {
          const { promise, resolve } = Promise.withResolvers<void>();
          running.push({ by: `${caller.team} ${caller.id}`, end: resolve });
          await promise;
        }),
      );
  };
  const end = async (by: string): Promise<void> => {
    const at = running.findIndex((each) => each.by === by);
    running.splice(at, 1)[0]?.end();
    await nextTurn();
  };
  const count = (by: string): number => running.filter((each) => each.by.startsWith(by)).length;
  return { shares, start, end, count };
}

test('a team, a caller in it, and callers without a key get only their share', async () => {
  const { shares, start, count } = flood(16);
  start(key('a', '1'), 100);
  await nextTurn();
  expect(count('a')).toBe(8);
  start(key('a', '2'), 100);
  await nextTurn();
  expect([count('a 1'), count('a 2')]).toEqual([8, 4]);
  start(key(null, 'address 1'), 100);
  start(key(null, 'address 2'), 100);
  await nextTurn();
  expect([count('null address 1'), count('null address 2')]).toEqual([4, 0]);
  expect(shares.waiting).toBe(400 - 16);
});

test('the next free connection goes to the team with the fewest, and in it to the caller with the fewest', async () => {
  const { start, end, count } = flood(4);
  start(key('a', '1'), 50);
  start(key('a', '2'), 50);
  start(key('b', '1'), 50);
  await nextTurn();
  expect([count('a 1'), count('a 2'), count('b 1')]).toEqual([2, 1, 1]);
  start(key('c', '1'));
  await end('a 1');
  expect([count('a 1'), count('a 2'), count('b 1'), count('c 1')]).toEqual([1, 1, 1, 1]);
  await end('c 1');
  await end('a 1');
  await end('a 2');
  expect([count('a 1'), count('a 2'), count('b 1')]).toEqual([1, 1, 2]);
});

test('work that holds a connection gets another one without waiting', async () => {
  const shares = makeShares(1);
  const inner = await workOf(key('a', '1'), () => shares.hold(() => shares.hold(async () => 'inner')));
  expect(inner).toBe('inner');
});

test('the caller of a request can be named later, and what continues after the request is work of the service', async () => {
  const shares = makeShares(4);
  const release = Promise.withResolvers<void>();
  const holdAll = () => Promise.all([1, 2, 3, 4].map(() => shares.hold(() => release.promise)));
  let later = Promise.resolve<unknown>(undefined);
  workFor(key(null, 'address'), (name, end) => {
    name(key('a', '1'));
    void holdAll();
    expect(shares.waiting).toBe(2);
    end();
    later = nextTurn().then(() => shares.hold(async () => 'by the service'));
  });
  expect(await later).toBe('by the service');
  void workForAll(holdAll);
  expect(shares.waiting).toBe(4);
  release.resolve();
  await expect.poll(() => shares.waiting).toBe(0);
});

test('with one connection, teams and their callers take turns', async () => {
  const shares = makeShares(1);
  const order: string[] = [];
  const work = (caller: Caller) =>
    workOf(caller, () => shares.hold(async () => void order.push(`${caller.team}${caller.id}`)));
  await Promise.all([
    ...[1, 2, 3].map(() => work(key('a', '1'))),
    ...[1, 2].map(() => work(key('a', '2'))),
    ...[1, 2].map(() => work(key('b', '1'))),
  ]);
  expect(order).toEqual(['a1', 'a1', 'b1', 'a2', 'b1', 'a1', 'a2']);
});

test('a work that waits too long fails as if the database were unavailable, and later works are not affected', async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const shares = makeShares(1);
  const { promise, resolve } = Promise.withResolvers<void>();
  const first = shares.hold(() => promise);
  const late = expect(shares.hold(async () => 'late')).rejects.toThrow(StoreUnavailable);
  await vi.advanceTimersByTimeAsync(10_000);
  await late;
  expect(shares.waiting).toBe(0);
  resolve();
  await first;
  expect(await shares.hold(async () => 'works')).toBe('works');
});

test('works that fail give their connections back', async () => {
  const shares = makeShares(1);
  for (let n = 0; n < 3; n += 1)
    await expect(shares.hold(() => Promise.reject(new Error('broken')))).rejects.toThrow('broken');
  expect(await shares.hold(async () => 'works')).toBe('works');
});
