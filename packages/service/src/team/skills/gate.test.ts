import { expect, test } from 'vitest';
import { makeGate } from './gate.ts';

const limits = { total: 3, perTeam: 2, waitingPerTeam: 4, waitMs: 60_000 };

/** Makes work that ends when the test ends it. */
function works() {
  const begun: string[] = [];
  const ends = new Map<string, () => void>();
  const work = (name: string) => () =>
    new Promise<string>((resolve) => {
      begun.push(name);
      ends.set(name, () => resolve(name));
    });
  return { begun, work, end: (name: string) => ends.get(name)?.() };
}

test('the gate limits the calls in total, of each team and for each key, and executes waiting calls in order', async () => {
  const gate = makeGate(limits);
  const { begun, work, end } = works();
  const run = (teamId: string, key: string) => gate.run({ teamId, key }, work(`${teamId}${key}`));
  const all = [run('a', '1'), run('a', '2'), run('a', '3'), run('b', '1'), run('b', '4'), run('c', '5')];
  const haveBegun = (...names: string[]) => expect.poll(() => begun).toEqual(names);
  await haveBegun('a1', 'a2', 'b4');
  end('a1');
  await haveBegun('a1', 'a2', 'b4', 'a3');
  end('a2');
  await haveBegun('a1', 'a2', 'b4', 'a3', 'b1');
  end('b4');
  await haveBegun('a1', 'a2', 'b4', 'a3', 'b1', 'c5');
  for (const name of ['a3', 'b1', 'c5']) end(name);
  expect(await Promise.all(all)).toEqual(['a1', 'a2', 'a3', 'b1', 'b4', 'c5']);
});

test('the gate refuses callers of a team with too many waiting calls, ends long waits, and continues after a failure', async () => {
  const gate = makeGate({ total: 1, perTeam: 1, waitingPerTeam: 1, waitMs: 20 });
  const { work, end } = works();
  const place = { teamId: 'a', key: '1' };
  const first = gate.run(place, work('first'));
  const second = gate.run(place, work('second'));
  expect(await gate.run(place, work('third'))).toBe('busy');
  expect(await second).toBe('busy');
  end('first');
  expect(await first).toBe('first');
  await expect(gate.run(place, () => Promise.reject(new Error('no')))).rejects.toThrow('no');
  expect(await gate.run(place, async () => 'next')).toBe('next');
});
