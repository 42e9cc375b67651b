import { expect, test } from 'vitest';
import { makeMessageBudget } from './message-budget.ts';

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
    spend: async (team: string, cost: number): Promise<number> => {
      waits.length = 0;
      await budget.spend(team, cost);
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
