/** Test support: parses the text of `/metrics`, and collects measurements of tests without a service. */
import { onTestFinished } from 'vitest';
import { recordWith } from '../src/platform/metrics/record.ts';

/**
 * Collects the measurements of this process until the test ends. Returns a function that returns the values of a metric, each with its
 * labels, in order.
 */
export function collectMeasurements(): (name: string) => { readonly labels: object; readonly value: number }[] {
  const all: { readonly name: string; readonly labels: object; readonly value: number }[] = [];
  onTestFinished(recordWith({ record: (name, labels, value) => void all.push({ name, labels, value }) }));
  return (name) => all.filter((each) => each.name === name).map(({ labels, value }) => ({ labels, value }));
}

/** Returns the value of each series, by its name and labels. */
export const readSeries = (text: string): Map<string, number> =>
  new Map(
    text
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('#'))
      .map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ') + 1))]),
  );
