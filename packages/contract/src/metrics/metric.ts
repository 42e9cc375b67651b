/** The type of a metric. This file does not load zod, because scripts that generate documentation also load the table of metrics. */

/**
 * A label with a limited set of values. Any other value counts as `other`, so that callers cannot create new time series with values of
 * their choice.
 */
export interface MetricLabel {
  readonly description: string;
  /**
   * The allowed values: a list, or a set that the service knows only at run time, such as the models of its catalogue. `known`
   * describes this set, and `atMost` is its maximum size.
   */
  readonly values: readonly string[] | { readonly known: string; readonly atMost: number };
}

export interface Metric {
  /**
   * Each process has its own values of a `counter`, a `histogram` and a `gauge`. `database` is a gauge whose value each process reads from
   * the database.
   */
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
