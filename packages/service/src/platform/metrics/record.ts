/** Records measurements of this process. Does nothing while metrics are off. Imports no library, so any module can use this file. */
import type { CounterName, HistogramName, LabelsOf, MetricName } from '@runyard/contract/metrics/metrics-table';

/** Takes the measurements of a process. */
export interface Recorder {
  record(name: MetricName, labels: Readonly<Record<string, string>>, value: number): void;
}

/** The process has one recorder, as in the API of OpenTelemetry, because most code that measures cannot reach the service object. */
let recorder: Recorder | undefined;

/** Sends all measurements to `next` from now on. Returns a function that stops this. */
export function recordWith(next: Recorder): () => void {
  recorder = next;
  return () => {
    if (recorder === next) recorder = undefined;
  };
}

/** Adds to a counter. A label value that is not in the table of metrics counts as `other`. */
export function count<N extends CounterName>(name: N, labels: LabelsOf<N>, by = 1): void {
  recorder?.record(name, labels, by);
}

/** Adds a measurement to a histogram. `value` is in the unit of the histogram. */
export function observe<N extends HistogramName>(name: N, labels: LabelsOf<N>, value: number): void {
  recorder?.record(name, labels, value);
}
