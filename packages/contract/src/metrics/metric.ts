/** The type of a metric. This file does not load zod, because generators also read the table of metrics. */

/**
 * A label with a limited set of values. Any other value counts as `other`, so that callers cannot increase the number of series.
 */
export interface MetricLabel {
  readonly description: string;
  /**
   * The allowed values. `known`: the service knows the values at run time, such as the models of its catalogue. There are at most
   * `atMost` values.
   */
  readonly values: readonly string[] | { readonly known: string; readonly atMost: number };
}

export interface Metric {
  /** `counter` and `histogram` belong to one process; `database` is a gauge that each process reads from the database. */
  readonly kind: 'counter' | 'histogram' | 'gauge' | 'database';
  /** Base unit in the notation of UCUM, which OTLP uses. */
  readonly unit: string;
  readonly description: string;
  readonly labels: Readonly<Record<string, MetricLabel>>;
  /** Upper bounds of the buckets of a histogram. */
  readonly buckets?: readonly number[];
}

/** The value that replaces all values that are not in a label's list. */
export const otherValue = 'other';
