/** Opens the metrics of a process. The libraries of OpenTelemetry are loaded here, and only if metrics are read or sent. */

import { setTimeout as delay } from 'node:timers/promises';
import type { Counter, Histogram, ObservableGauge } from '@opentelemetry/api';
import type { Metric } from '@runyard/contract/metrics/metric';
import { type MetricName, metricsTable } from '@runyard/contract/metrics/metrics-table';
import type { Logger } from 'pino';
import { boundLabelsWith, type KnownValues } from './bound-labels.ts';
import type { ReadGauges, Reading } from './gauges.ts';
import { exporterOptions, exportsSignal, logDiagnostics, protocolOf, resourceOf, wholeOf } from './otel-variables.ts';
import { count, recordWith } from './record.ts';

export interface Metrics {
  /** Adds functions that read gauges. */
  addGauges(sources: readonly ReadGauges[]): void;
  /** Returns all metrics in the text format of Prometheus 0.0.4. Concurrent calls get the same text. */
  text(): Promise<string>;
  /** Stops recording. If OTLP is configured, sends the last metrics first. */
  close(): Promise<void>;
}

export interface MetricsOptions {
  /** True: the service answers requests for metrics with `text`. */
  readonly isRead: boolean;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly known: KnownValues;
  readonly log: Pick<Logger, 'warn'>;
  /** Milliseconds for which all readers get the same readings of the gauges. Default: 5,000. */
  readonly sharedMs?: number;
}

const defaultSharedMs = 5_000;
/** Longest time that a scrape waits for the gauges, milliseconds. Prometheus cancels a scrape after 10 s. */
const slowestReadMs = 3_000;

const table: [MetricName, Metric][] = Object.entries(metricsTable) as [MetricName, Metric][];

/** Opens the metrics. Returns undefined if no setting requests metrics and no `OTEL_…` variable sets a destination for them. */
export async function openMetrics(options: MetricsOptions): Promise<Metrics | undefined> {
  const { env, log, known } = options;
  const isSent = exportsSignal(env, 'METRICS');
  if (!options.isRead && !isSent) return undefined;
  const [{ MeterProvider, PeriodicExportingMetricReader }, { PrometheusExporter, PrometheusSerializer }, resource] =
    await Promise.all([
      import('@opentelemetry/sdk-metrics'),
      import('@opentelemetry/exporter-prometheus'),
      resourceOf(),
      logDiagnostics(log),
    ]);
  // This exporter only reads the metrics. The service itself answers /metrics, because the exporter's own port cannot check a token.
  const scraped = new PrometheusExporter({ preventServerStart: true });
  const intervalMs = wholeOf(env.OTEL_METRIC_EXPORT_INTERVAL, 60_000);
  const sending = isSent
    ? [
        new PeriodicExportingMetricReader({
          exporter: await openExporter(env),
          exportIntervalMillis: intervalMs,
          exportTimeoutMillis: Math.min(intervalMs, wholeOf(env.OTEL_METRIC_EXPORT_TIMEOUT, 30_000)),
        }),
      ]
    : [];
  const provider = new MeterProvider({ resource, readers: [scraped, ...sending] });
  const meter = provider.getMeter('runyard');
  const sums = new Map<MetricName, Counter | Histogram>();
  const gauges = new Map<MetricName, ObservableGauge>();
  for (const [name, { kind, unit, description, buckets }] of table) {
    if (kind === 'counter') sums.set(name, meter.createCounter(name, { unit, description }));
    else if (kind === 'histogram') {
      const advice = buckets ? { advice: { explicitBucketBoundaries: [...buckets] } } : {};
      sums.set(name, meter.createHistogram(name, { unit, description, ...advice }));
    } else gauges.set(name, meter.createObservableGauge(name, { unit, description }));
  }
  const bound = boundLabelsWith(known);
  const stop = recordWith({
    record: (name, labels, value) => {
      const instrument = sums.get(name);
      if (instrument && 'add' in instrument) instrument.add(value, bound(name, labels));
      else instrument?.record(value, bound(name, labels));
    },
  });
  const sources: ReadGauges[] = [];
  const read = sharedReads(sources, log, options.sharedMs ?? defaultSharedMs);
  meter.addBatchObservableCallback(
    async (result) => {
      for (const { name, labels, value } of await read()) {
        const gauge = gauges.get(name);
        if (gauge) result.observe(gauge, value, bound(name, labels));
      }
    },
    [...gauges.values()],
  );
  let collecting: Promise<string> | undefined;
  const serializer = new PrometheusSerializer('', false, undefined, true, true);
  return {
    addGauges: (more) => void sources.push(...more),
    text: () => {
      collecting ??= scraped
        .collect()
        .then(({ resourceMetrics }) => serializer.serialize(resourceMetrics))
        .finally(() => {
          collecting = undefined;
        });
      return collecting;
    },
    close: async () => {
      stop();
      await provider.shutdown({ timeoutMillis: 5_000 }).catch(() => undefined);
    },
  };
}

async function openExporter(env: MetricsOptions['env']) {
  const { OTLPMetricExporter } =
    protocolOf(env, 'METRICS') === 'http/json'
      ? await import('@opentelemetry/exporter-metrics-otlp-http')
      : await import('@opentelemetry/exporter-metrics-otlp-proto');
  return new OTLPMetricExporter(exporterOptions(env, 'METRICS'));
}

/** Returns a function that reads all gauges. For `sharedMs` after the start of a reading, all calls get the result of that reading. */
function sharedReads(
  sources: readonly ReadGauges[],
  log: Pick<Logger, 'warn'>,
  sharedMs: number,
): () => Promise<readonly Reading[]> {
  let last: { readonly at: number; readonly readings: Promise<readonly Reading[]> } | undefined;
  let isFailing = false;
  const readAll = async (): Promise<readonly Reading[]> => {
    const late = delay(slowestReadMs, undefined, { ref: false }).then(() => {
      throw new Error(`the gauges were not read within ${slowestReadMs} ms`);
    });
    late.catch(() => undefined);
    const results = await Promise.allSettled(sources.map(async (source) => await Promise.race([source(), late])));
    const failures = results.filter((result) => result.status === 'rejected');
    if (failures.length > 0) count('runyard_metrics_read_failures_total', {}, failures.length);
    // Log only the first of several failed readings, so that an outage produces one line and not one line for each scrape.
    if (failures.length > 0 && !isFailing)
      log.warn({ err: failures[0]?.reason }, 'gauges of the metrics were not read');
    isFailing = failures.length > 0;
    return results.flatMap((result) => (result.status === 'fulfilled' ? result.value : []));
  };
  return async () => {
    if (!last || performance.now() - last.at >= sharedMs) last = { at: performance.now(), readings: readAll() };
    return await last.readings;
  };
}
