import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { makeMessageBudget, payerOf } from './message-budget.ts';

const megabyte = 1024 * 1024;

/** A budget with a clock of its own. Returns the milliseconds that each cost had to wait. */
function openBudget() {
  let clock = 1_000_000;
  const waits: number[] = [];
  const budget = makeMessageBudget(
    () => clock,
    async (ms) => void waits.push(Math.round(ms)),
  );
  return {
    budget,
    waits,
    /** Each call has a new caller, unless `caller` is given. */
    spend: async (team: string, cost: number, caller: string = randomUUID()): Promise<number> => {
      waits.length = 0;
      await budget.spend({ team, caller }, cost);
      return waits[0] ?? 0;
    },
    pass: (ms: number) => {
      clock += ms;
    },
  };
}

test('a team spends its burst at once, and then waits until it has paid for its earlier messages', async () => {
  const { spend, pass } = openBudget();
  expect(await spend('a', 4 * megabyte)).toBe(0);
  // The costs of a message are paid before the next message.
  expect(await spend('a', megabyte)).toBe(0);
  expect(await spend('a', 1)).toBe(1000);
  pass(1000);
  expect(await spend('a', megabyte)).toBe(0);
  expect(await spend('a', 1)).toBe(1000);
});

test('a team does not wait for the messages of another team', async () => {
  const { spend } = openBudget();
  for (let n = 0; n < 100; n += 1) await spend('a', megabyte);
  expect(await spend('b', megabyte)).toBe(0);
});

test('a pause gives a team its burst again, and no more', async () => {
  const { spend, pass } = openBudget();
  await spend('a', 4 * megabyte);
  pass(3_600_000);
  for (const team of ['b', 'c']) await spend(team, 1);
  expect(await spend('a', 5 * megabyte)).toBe(0);
  expect(await spend('a', 1)).toBe(1000);
});

test('the messages of one caller use half of the rate, so the others of the team do not wait for them', async () => {
  const { spend, pass } = openBudget();
  expect(await spend('a', 2 * megabyte, 'one')).toBe(0);
  for (let n = 0; n < 60; n += 1) {
    pass(await spend('a', megabyte / 2, 'one'));
    expect(await spend('a', 1024, 'other')).toBe(0);
  }
  expect(await spend('a', megabyte, 'one')).toBeGreaterThan(0);
});

test("the hosted pool does not wait for other workers of the operator's team", async () => {
  const { budget, waits } = openBudget();
  const of = (uid: string, poolTeam: string | null) =>
    payerOf({ teamId: 't', keyId: `key of ${uid}`, creator: { uid } }, poolTeam);
  for (const uid of ['a', 'b', 'c']) for (let n = 0; n < 20; n += 1) await budget.spend(of(uid, 't'), megabyte);
  waits.length = 0;
  await budget.spend(of('a', null), megabyte);
  expect(waits).toEqual([]);
});
