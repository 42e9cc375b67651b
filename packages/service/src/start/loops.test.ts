import pino from 'pino';
import { expect, it } from 'vitest';
import { startLoops } from './loops.ts';

const silent = pino({ level: 'silent' });
const noJitter = () => 0.5;

it('runs the first round at once and the next ones after the given time', async () => {
  const rounds: number[] = [];
  const startedAt = performance.now();
  const work = async () => rounds.push(performance.now() - startedAt);
  const stop = startLoops([{ name: 'counting', everyMs: 20, work }], { log: silent, random: noJitter });
  expect(rounds).toHaveLength(1);
  await expect.poll(() => rounds.length).toBeGreaterThanOrEqual(3);
  await stop();
  expect(rounds[2]).toBeGreaterThanOrEqual(2 * 19);
});

it('never runs two rounds of a loop at the same time', async () => {
  let running = 0;
  let most = 0;
  let rounds = 0;
  const work = async () => {
    running += 1;
    rounds += 1;
    most = Math.max(most, running);
    await new Promise((resolve) => setTimeout(resolve, 15));
    running -= 1;
  };
  const stop = startLoops([{ name: 'slow work', everyMs: 1, work }], { log: silent, random: noJitter });
  await expect.poll(() => rounds).toBeGreaterThanOrEqual(4);
  await stop();
  expect(most).toBe(1);
});

it('logs a failed round and starts the next one', async () => {
  const lines: string[] = [];
  const log = pino({ level: 'error' }, { write: (line: string) => lines.push(line) });
  let rounds = 0;
  const work = async () => {
    rounds += 1;
    if (rounds === 1) throw new Error('The table is locked.');
  };
  const stop = startLoops([{ name: 'the sweep', everyMs: 1, work }], { log, random: noJitter });
  await expect.poll(() => rounds).toBeGreaterThanOrEqual(2);
  await stop();
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([
    { msg: 'the sweep failed; the next round tries again', err: { message: 'The table is locked.' } },
  ]);
});

it('aborts the signal at a stop, waits for the round in progress and starts no other', async () => {
  let rounds = 0;
  let finished = false;
  const work = async (signal: AbortSignal) => {
    rounds += 1;
    await new Promise((resolve) => signal.addEventListener('abort', resolve));
    await new Promise((resolve) => setImmediate(resolve));
    finished = true;
  };
  const stop = startLoops([{ name: 'waiting', everyMs: 0, work }], { log: silent, random: noJitter });
  await stop();
  expect(finished).toBe(true);
  await new Promise((resolve) => setTimeout(resolve, 5));
  expect(rounds).toBe(1);
});
