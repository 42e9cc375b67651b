import pino from 'pino';
import { describe, expect, it } from 'vitest';
import type { Statement } from '../../platform/store/database/statement.ts';
import { type LoopDeps, startLoops } from './loops.ts';

const silent = pino({ level: 'silent' });

/** No loop has due work, unless a test changes this. */
const deps: LoopDeps = { log: silent, random: () => 0.5, makeFindDue: () => async () => [] };
const statement = (name: string): Statement => ({ name, text: `SELECT FROM ${name}` });

it('a loop runs the first round at once and each next round after the given time', async () => {
  const rounds: number[] = [];
  const startedAt = performance.now();
  const work = async () => rounds.push(performance.now() - startedAt);
  const stop = startLoops([{ name: 'counting', everyMs: 20, work }], deps);
  expect(rounds).toHaveLength(1);
  await expect.poll(() => rounds.length).toBeGreaterThanOrEqual(3);
  await stop();
  expect(rounds[2]).toBeGreaterThanOrEqual(2 * 19);
});

it('a loop never runs two rounds at the same time', async () => {
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
  const stop = startLoops([{ name: 'slow work', everyMs: 1, work }], deps);
  await expect.poll(() => rounds).toBeGreaterThanOrEqual(4);
  await stop();
  expect(most).toBe(1);
});

it('a loop logs a failed round and starts the next round', async () => {
  const lines: string[] = [];
  const log = pino({ level: 'error' }, { write: (line: string) => lines.push(line) });
  let rounds = 0;
  const work = async () => {
    rounds += 1;
    if (rounds === 1) throw new Error('The table is locked.');
  };
  const stop = startLoops([{ name: 'the sweep', everyMs: 1, work }], { ...deps, log });
  await expect.poll(() => rounds).toBeGreaterThanOrEqual(2);
  await stop();
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([
    { msg: 'the sweep failed; the next round tries again', err: { message: 'The table is locked.' } },
  ]);
});

it('a stop aborts the signal, waits for the round in progress and starts no further round', async () => {
  let rounds = 0;
  let finished = false;
  const work = async (signal: AbortSignal) => {
    rounds += 1;
    await new Promise((resolve) => signal.addEventListener('abort', resolve));
    await new Promise((resolve) => setImmediate(resolve));
    finished = true;
  };
  const stop = startLoops([{ name: 'waiting', everyMs: 0, work }], deps);
  await stop();
  expect(finished).toBe(true);
  await new Promise((resolve) => setTimeout(resolve, 5));
  expect(rounds).toBe(1);
});

describe('loops with statements for due work', () => {
  /** Starts two loops. The query for due work finds the loops in `found`. */
  const startTwo = (look: (found: readonly number[]) => Promise<readonly number[]>, more: Partial<LoopDeps> = {}) => {
    const rounds = [0, 0];
    const found = new Set<number>();
    let looks = 0;
    const asked: string[][] = [];
    const loops = ['runs', 'deliveries'].map((name, place) => ({
      name,
      everyMs: 2,
      due: [statement(name)],
      work: async () => {
        rounds[place] = (rounds[place] ?? 0) + 1;
      },
    }));
    const makeFindDue: LoopDeps['makeFindDue'] = (due) => {
      asked.push(...due.map((statements) => statements.map(({ name }) => name)));
      return () => {
        looks += 1;
        return look([...found]);
      };
    };
    const stop = startLoops(loops, { ...deps, makeFindDue, lookEveryMs: 2, ...more });
    return { rounds, found, asked, looks: () => looks, stop };
  };

  it('run once at the start, and later only when the query finds work for them', async () => {
    const t = startTwo(async (found) => found);
    expect(t.asked).toEqual([['runs'], ['deliveries']]);
    expect(t.rounds).toEqual([1, 1]);
    await expect.poll(t.looks).toBeGreaterThanOrEqual(3);
    expect(t.rounds).toEqual([1, 1]);
    t.found.add(1);
    await expect.poll(() => t.rounds[1]).toBeGreaterThanOrEqual(3);
    expect(t.rounds[0]).toBe(1);
    await t.stop();
  });

  it('all run while the query for due work fails', async () => {
    const t = startTwo(async () => {
      throw new Error('The connection was lost.');
    });
    await expect.poll(() => Math.min(...t.rounds)).toBeGreaterThanOrEqual(3);
    await t.stop();
  });

  it('all run while the query for due work waits for a lock, and a second query is not started', async () => {
    let unlock: (found: readonly number[]) => void = () => undefined;
    const locked = new Promise<readonly number[]>((resolve) => {
      unlock = resolve;
    });
    const t = startTwo(() => locked, { slowLookMs: 2 });
    await expect.poll(() => Math.min(...t.rounds)).toBeGreaterThanOrEqual(3);
    expect(t.looks()).toBe(1);
    unlock([]);
    await t.stop();
  });

  it('never run twice at the same time, while other loops continue', async () => {
    let release: () => void = () => undefined;
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    let slow = 0;
    let quick = 0;
    const makeFindDue = () => async () => [0, 1];
    const loops = [
      { name: 'slow', everyMs: 1, due: [statement('slow')], work: () => (slow++ === 0 ? held : Promise.resolve()) },
      { name: 'quick', everyMs: 1, due: [statement('quick')], work: async () => quick++ },
    ];
    const stop = startLoops(loops, { ...deps, makeFindDue, lookEveryMs: 2 });
    await expect.poll(() => quick).toBeGreaterThanOrEqual(3);
    expect(slow).toBe(1);
    release();
    await expect.poll(() => slow).toBeGreaterThanOrEqual(2);
    await stop();
  });

  it('wait for their own interval after a round', async () => {
    let quick = 0;
    let rare = 0;
    const loops = [
      { name: 'quick', everyMs: 1, due: [statement('quick')], work: async () => quick++ },
      { name: 'rare', everyMs: 600_000, due: [statement('rare')], work: async () => rare++ },
    ];
    const stop = startLoops(loops, { ...deps, makeFindDue: () => async () => [0, 1], lookEveryMs: 2 });
    await expect.poll(() => quick).toBeGreaterThanOrEqual(4);
    expect(rare).toBe(1);
    await stop();
  });

  it('stop only after the query and the rounds in progress have ended', async () => {
    let answer: (found: readonly number[]) => void = () => undefined;
    const t = startTwo(
      () =>
        new Promise((resolve) => {
          answer = resolve;
        }),
      { slowLookMs: 600_000 },
    );
    await expect.poll(t.looks).toBe(1);
    let isStopped = false;
    const stopped = t.stop().then(() => {
      isStopped = true;
    });
    await new Promise((resolve) => setImmediate(resolve));
    expect(isStopped).toBe(false);
    answer([0, 1]);
    await stopped;
    expect(t.rounds).toEqual([1, 1]);
  });
});
