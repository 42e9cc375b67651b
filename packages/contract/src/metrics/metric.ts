/** The type of a metric. Loads no zod, because generators and the service read the table. */

/**
 * A label with a bounded set of values. Any other value counts as `other`, so that no caller can increase the number of series.
 */
export interface MetricLabel {
  readonly description: string;
  /** The values. `known`: the service knows the values at run time, such as the models of its catalogue; there are at most `atMost`. */
  readonly values: readonly string[] | { readonly known: string; readonly atMost: number };
}

export interface Metric {
  /** `counter` and `histogram` belong to one process; `database` is a gauge that each process reads from the database. */
  readonly kind: 'counter' | 'histogram' | 'gauge' | 'database';
  /** Unit in UCUM, as OTLP sends it: base units only. */
  readonly unit: string;
  readonly description: string;
  readonly labels: Readonly<Record<string, MetricLabel>>;
  /** Upper bounds of the buckets of a histogram. */
  readonly buckets?: readonly number[];
}

/** The value that replaces all values that are not in a label's list. */
export const otherValue = 'other';
