import type { GaugeName, LabelsOf, MetricName } from '@runyard/contract/metrics/metrics-table';

/** A value of a gauge. */
export interface Reading {
  readonly name: MetricName;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** Makes a reading. The types check that it has the labels of the metric. */
export const reading = <N extends GaugeName>(name: N, labels: LabelsOf<N>, value: number): Reading => ({
  name,
  labels,
  value,
});

/** Reads the values of some gauges. Called at most once in a few seconds, however many scrapers ask. */
export type ReadGauges = () => Promise<readonly Reading[]> | readonly Reading[];
