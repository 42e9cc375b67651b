/** Records measurements of this process. Does nothing while metrics are off, and loads no library. */
import type { CounterName, HistogramName, LabelsOf, MetricName } from '@runyard/contract/metrics/metrics-table';

/** Takes the measurements of a process. */
export interface Recorder {
  record(name: MetricName, labels: Readonly<Record<string, string>>, value: number): void;
}

/** One for the process, as the API of OpenTelemetry has one: most places that measure have no object of the service. */
let recorder: Recorder | undefined;

/** Sends measurements to `next`. Returns the function that ends this. */
export function recordWith(next: Recorder): () => void {
  recorder = next;
  return () => {
    if (recorder === next) recorder = undefined;
  };
}

/** Adds to a counter. A label's value that the table of metrics does not have counts as `other`. */
export function count<N extends CounterName>(name: N, labels: LabelsOf<N>, by = 1): void {
  recorder?.record(name, labels, by);
}

/** Adds a measurement to a histogram, in its unit. */
export function observe<N extends HistogramName>(name: N, labels: LabelsOf<N>, value: number): void {
  recorder?.record(name, labels, value);
}
