/** Measures several ways to do the same work in turns, so that other work on the machine slows all ways alike. */
import { percentile } from './report.ts';

/** Returns the milliseconds that the work takes. */
export async function timed(work: () => unknown): Promise<number> {
  const started = performance.now();
  await work();
  return performance.now() - started;
}

/**
 * Calls the function of each way once in every round. Returns the numbers that these functions returned, without those of the first
 * `warmUp` rounds.
 */
export async function inTurns<Way extends string>(
  ways: Readonly<Record<Way, () => number | Promise<number>>>,
  rounds: number,
  warmUp = 2,
): Promise<Record<Way, number[]>> {
  const names = Object.keys(ways) as Way[];
  const samples = Object.fromEntries(names.map((name) => [name, [] as number[]])) as Record<Way, number[]>;
  for (let round = -warmUp; round < rounds; round += 1) {
    for (const name of names) {
      const value = await ways[name]();
      if (round >= 0) samples[name].push(value);
    }
  }
  return samples;
}

/** Titles of the columns for the numbers that `spread` returns. */
export const spreadColumns = ['p50', 'p99', 'best'] as const;

/** Returns median, 99th percentile and best of a sample, each with this number of decimals. */
export function spread(sample: readonly number[], decimals = 1): string[] {
  return [percentile(sample, 0.5), percentile(sample, 0.99), Math.min(...sample)].map((value) =>
    value.toFixed(decimals),
  );
}
