import { describe, expect, test } from 'vitest';
import { type BodyLimits, makeBodyBudget, type Place } from './body-budget.ts';

const kb = 1024;
const limits: BodyLimits = {
  smallBytes: 10 * kb,
  small: { total: 100 * kb, perTeam: 100 * kb, perExecution: 100 * kb },
  large: { total: 1000 * kb, perTeam: 600 * kb, perExecution: 200 * kb },
  requestsPerExecution: 3,
  waiting: 2,
  waitMs: 60_000,
};
const staying = new AbortController().signal;
const own = { teamId: 't', executionId: 'e' };

/** Returns the result of `enter`, or undefined if `enter` waits. */
const now = async <T>(entered: Promise<T>): Promise<T | undefined> =>
  await Promise.race([entered, new Promise<undefined>((resolve) => setImmediate(resolve, undefined))]);

function held(place: Place | 'busy' | 'gone' | undefined): Place {
  if (typeof place !== 'object') throw new Error(`no place, but ${place}`);
  return place;
}

test('a body that would exceed the memory limit of its execution waits, and other executions continue', async () => {
  const budget = makeBodyBudget(limits);
  const first = held(await budget.enter(own, 150 * kb, staying));
  const second = budget.enter(own, 150 * kb, staying);
  expect(await now(second)).toBeUndefined();
  held(await now(budget.enter({ teamId: 't', executionId: 'f' }, 150 * kb, staying)));
  first.release();
  first.release();
  held(await second);
  expect(await now(budget.enter(own, 150 * kb, staying))).toBeUndefined();
});

test('the budget limits the memory for the bodies of one team and for the bodies of all teams together', async () => {
  const budget = makeBodyBudget(limits);
  const large = held(await budget.enter({ teamId: 't' }, 600 * kb, staying));
  expect(await now(budget.enter({ teamId: 't' }, 20 * kb, staying))).toBeUndefined();
  held(await now(budget.enter({ teamId: 'u' }, 400 * kb, staying)));
  const third = budget.enter({ teamId: 'v' }, 20 * kb, staying);
  expect(await now(third)).toBeUndefined();
  large.releaseBytes();
  held(await third);
});

test('the budget accepts a body that is larger than the limits if no other body holds memory', async () => {
  const budget = makeBodyBudget(limits);
  held(await now(budget.enter(own, 5000 * kb, staying))).release();
  held(await now(budget.enter(own, kb, staying)));
});

test('a small body gets memory while a large body waits', async () => {
  const budget = makeBodyBudget(limits);
  held(await budget.enter(own, 200 * kb, staying));
  expect(await now(budget.enter(own, 200 * kb, staying))).toBeUndefined();
  held(await now(budget.enter(own, 10 * kb, staying)));
});

test('the budget limits how many requests of an execution are in progress, even if they hold no bytes, and how many wait', async () => {
  const budget = makeBodyBudget(limits);
  const places = await Promise.all([1, 2, 3].map(() => budget.enter(own, kb, staying)));
  for (const place of places) held(place).releaseBytes();
  const waiting = [budget.enter(own, kb, staying), budget.enter(own, kb, staying)];
  expect(await now(Promise.race(waiting))).toBeUndefined();
  expect(await now(budget.enter(own, kb, staying))).toBe('busy');
  held(places[0]).release();
  held(places[1]).release();
  for (const place of await Promise.all(waiting)) held(place);
});

test('an aborted request gets `gone`, and a request that waits too long gets `busy`', async () => {
  const budget = makeBodyBudget({ ...limits, waitMs: 10 });
  held(await budget.enter(own, 200 * kb, staying));
  const gone = new AbortController();
  const left = budget.enter(own, 100 * kb, gone.signal);
  gone.abort();
  expect(await left).toBe('gone');
  expect(await budget.enter(own, 100 * kb, gone.signal)).toBe('gone');
  expect(await budget.enter(own, 100 * kb, staying)).toBe('busy');
});

test('a large body gets its memory, even if small requests of other teams arrive all the time', async () => {
  const budget = makeBodyBudget(limits);
  const first = held(await budget.enter({ teamId: 't' }, 500 * kb, staying));
  const large = budget.enter({ teamId: 'u' }, 600 * kb, staying);
  const later = budget.enter({ teamId: 'v' }, 20 * kb, staying);
  expect(await now(later)).toBeUndefined();
  first.release();
  held(await large);
  held(await later);
});

describe('a budget that reserves a share of the memory for each team', () => {
  const shared = { total: 1000 * kb, share: 100 * kb, common: 600 * kb, perTeam: 700 * kb, keyless: 50 * kb };
  const make = () => makeBodyBudget({ ...limits, large: { ...shared, perExecution: 200 * kb } });
  const enter = (budget: ReturnType<typeof make>, teamId: string | undefined, bytes: number) =>
    now(budget.enter({ teamId }, bytes, staying));

  test('gives each team its share, even if other teams use or wait for all bytes that are not reserved', async () => {
    const budget = make();
    held(await enter(budget, 'greedy', 700 * kb));
    expect(await enter(budget, 'greedy', 20 * kb)).toBeUndefined();
    // Another team is first in the queue and waits for the common memory.
    expect(await enter(budget, 'large', 300 * kb)).toBeUndefined();
    for (const team of ['a', 'b', 'c']) held(await enter(budget, team, 100 * kb));
    expect(await enter(budget, 'a', 20 * kb)).toBeUndefined();
  });

  test("gives all senders without a key one small part of the memory, and takes nothing from the teams' shares", async () => {
    const budget = make();
    held(await enter(budget, undefined, 30 * kb));
    expect(await enter(budget, undefined, 30 * kb)).toBeUndefined();
    held(await enter(budget, 'team', 700 * kb));
    held(await enter(budget, 'other', 100 * kb));
  });

  test('gives the common memory to waiting requests in the order of arrival', async () => {
    const budget = make();
    const first = held(await enter(budget, 'a', 700 * kb));
    const large = budget.enter({ teamId: 'b' }, 650 * kb, staying);
    const later = budget.enter({ teamId: 'c' }, 150 * kb, staying);
    expect([await now(large), await now(later)]).toEqual([undefined, undefined]);
    first.release();
    held(await large).release();
    held(await later);
  });

  test('does not delay a team because another team has reached its own limit', async () => {
    const budget = make();
    held(await enter(budget, 'a', 400 * kb));
    expect(await enter(budget, 'a', 500 * kb)).toBeUndefined();
    held(await enter(budget, 'b', 300 * kb));
  });
});

test('the default limits keep memory for other teams, even if one team and senders without a key send very many bodies', async () => {
  const budget = makeBodyBudget();
  const mb = 1024 * kb;
  const flood = async (teamId: string | undefined, bytes: number) => {
    for (let n = 0; n < 300; n += 1) await now(budget.enter({ teamId }, bytes, staying));
  };
  for (const bytes of [64 * kb, 16 * mb]) {
    await flood('greedy', bytes);
    await flood(undefined, bytes);
  }
  for (const bytes of [64 * kb, 2 * mb])
    for (const teamId of ['a', 'b']) held(await now(budget.enter({ teamId }, bytes, staying)));
});
