import { otherValue } from '@runyard/contract/metrics/metric';
import { type MetricName, metricsTable } from '@runyard/contract/metrics/metrics-table';

/** The allowed values of the labels `model` and `pool`, which only the running service knows. */
export interface KnownValues {
  /** Returns whether the service offers the model. */
  isModel(id: string): boolean;
  /** Returns whether the name is one of the pools to show. */
  isPool(name: string): boolean;
}

type Labels = Readonly<Record<string, string>>;

/**
 * Returns a function that returns the labels of a metric and replaces each unknown value by `other`, so that callers of the API cannot
 * create new time series.
 */
export function boundLabelsWith(known: KnownValues): (name: MetricName, labels: Labels) => Record<string, string> {
  // Teams and automations come only from the database, and their gauges show the same ones each time.
  const allows: Readonly<Record<string, (value: string) => boolean>> = { pool: known.isPool, model: known.isModel };
  const rules = new Map(
    Object.entries(metricsTable).map(([name, { labels }]) => [
      name,
      Object.entries(labels).map(([label, { values }]): [string, (value: string) => boolean] => {
        if (Array.isArray(values)) {
          const set = new Set<string>(values);
          return [label, (value) => set.has(value)];
        }
        const { atMost } = values as { readonly atMost: number };
        return [label, limited(allows[label] ?? (() => true), atMost)];
      }),
    ]),
  );
  return (name, labels) => {
    const bound: Record<string, string> = {};
    for (const [label, has] of rules.get(name) ?? []) {
      const value = labels[label] ?? otherValue;
      bound[label] = has(value) ? value : otherValue;
    }
    return bound;
  };
}

/**
 * Returns a condition that allows at most `atMost` different values while the process runs. The models and pools can change meanwhile,
 * so `allows` alone does not limit the number of values.
 */
function limited(allows: (value: string) => boolean, atMost: number): (value: string) => boolean {
  const seen = new Set<string>();
  return (value) => {
    if (seen.has(value)) return true;
    if (seen.size >= atMost || !allows(value)) return false;
    seen.add(value);
    return true;
  };
}
