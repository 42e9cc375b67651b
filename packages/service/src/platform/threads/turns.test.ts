import { setImmediate as turn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { makeTurns } from './turns.ts';

test('only one call runs at a time, and the teams take turns', async () => {
  const turns = makeTurns({ waiting: 10, waitingPerTeam: 10 });
  const order: string[] = [];
  let running = 0;
  const call = (teamId: string, name: string) =>
    turns(teamId, async () => {
      running += 1;
      expect(running).toBe(1);
      order.push(name);
      await turn();
      running -= 1;
      if (name === 'a2') throw new Error('failed');
      return name;
    }).catch(() => 'threw');
  const names = ['a1', 'a2', 'a3', 'a4', 'b1', 'b2', 'c1'];
  const results = await Promise.all(names.map((name) => call(name.slice(0, 1), name)));
  expect(order).toEqual(['a1', 'a2', 'b1', 'c1', 'a3', 'b2', 'a4']);
  expect(results).toEqual(['a1', 'threw', 'a3', 'a4', 'b1', 'b2', 'c1']);
  expect(await call('a', 'a5')).toBe('a5');
});

test('a call is refused if too many calls of its team, or of all teams together, already wait', async () => {
  const turns = makeTurns({ waiting: 3, waitingPerTeam: 2 });
  const end = Promise.withResolvers<void>();
  const calls = ['a', 'a', 'a', 'a', 'b', 'c'].map((teamId) => turns(teamId, () => end.promise.then(() => 'done')));
  await turn();
  end.resolve();
  expect(await Promise.all(calls)).toEqual(['done', 'done', 'done', 'busy', 'done', 'busy']);
});
