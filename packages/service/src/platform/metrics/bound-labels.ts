import { otherValue } from '@runyard/contract/metrics/metric';
import { type MetricName, metricsTable } from '@runyard/contract/metrics/metrics-table';

/** The values of labels that only the running service knows. */
export interface KnownValues {
  /** Returns whether the service offers the model. */
  isModel(id: string): boolean;
  /** Returns whether the name is one of the pools to show. */
  isPool(name: string): boolean;
}

type Labels = Readonly<Record<string, string>>;

/** Returns the labels of a metric, with `other` in place of each unknown value, so that a caller cannot create a series. */
export function boundLabelsWith(known: KnownValues): (name: MetricName, labels: Labels) => Record<string, string> {
  const rules = new Map(
    Object.entries(metricsTable).map(([name, { labels }]) => [
      name,
      Object.entries(labels).map(([label, { values }]): [string, (value: string) => boolean] => {
        if (Array.isArray(values)) {
          const set = new Set<string>(values);
          return [label, (value) => set.has(value)];
        }
        const { atMost } = values as { readonly atMost: number };
        return [label, limited(label === 'pool' ? known.isPool : known.isModel, atMost)];
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

/** Limits how many different values a condition allows, because the models and pools can change while the service runs. */
function limited(allows: (value: string) => boolean, atMost: number): (value: string) => boolean {
  const seen = new Set<string>();
  return (value) => {
    if (seen.has(value)) return true;
    if (seen.size >= atMost || !allows(value)) return false;
    seen.add(value);
    return true;
  };
}
