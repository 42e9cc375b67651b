import type { Settings } from '@runyard/contract/settings/settings';
import type { Logger } from 'pino';
import { type Metrics, openMetrics } from '../../platform/metrics/open-metrics.ts';
import { openTraces } from '../../platform/metrics/open-traces.ts';
import { measureProcess } from '../../platform/metrics/process-gauges.ts';
import type { Database } from '../../platform/store/database/database.ts';
import { hostedPool } from '../../runs/executions/queue/measure.ts';
import { traceRunsWith } from '../../runs/executions/tracing/notice.ts';
import { makeRunTracer } from '../../runs/executions/tracing/trace-runs.ts';
import type { Models } from '../../team/models/models.ts';

/** If a model is not in the list of models, the list is read again, but at most once in this time. Milliseconds. */
const listAgainMs = 10_000;

/** Returns a function that checks whether the service lists a model. */
function listsModel(models: Models): (id: string) => boolean {
  let listed = new Set<string>();
  let readAt = Number.NEGATIVE_INFINITY;
  return (id) => {
    if (!listed.has(id) && performance.now() - readAt >= listAgainMs) {
      readAt = performance.now();
      listed = new Set(models.list().models.map((each) => each.id));
    }
    return listed.has(id);
  };
}

interface TelemetryParts {
  readonly settings: Settings;
  readonly models: Models;
  readonly db: Database;
  readonly log: Logger;
  /** The functions of this file add to this list the steps that end the telemetry. */
  readonly undo: { add(step: () => Promise<unknown>): void };
}

/** Starts the traces of runs if an environment variable names their destination. */
export async function startTraces({ db, log, undo }: Pick<TelemetryParts, 'db' | 'log' | 'undo'>): Promise<void> {
  const traces = await openTraces(process.env, log);
  if (!traces) return;
  const tracer = makeRunTracer({ db, traces, log });
  const stop = traceRunsWith(tracer);
  undo.add(async () => {
    stop();
    await tracer.close();
    await traces.close();
  });
}

/** Starts the metrics of the process if a setting or an environment variable requests them. The domains add their gauges later. */
export async function startMetrics({ settings, models, db, log, undo }: TelemetryParts): Promise<Metrics | undefined> {
  const { RUNYARD_METRICS_LISTEN: place, RUNYARD_METRICS_TOKEN: token, RUNYARD_METRICS_POOLS: pools = [] } = settings;
  const isPool = (name: string) => name === hostedPool || pools.includes(name);
  const metrics = await openMetrics({
    isRead: place !== undefined || token !== undefined,
    env: process.env,
    known: { isModel: listsModel(models), isPool },
    log,
  });
  if (!metrics) return undefined;
  undo.add(() => metrics.close());
  const { read, stop } = measureProcess(db);
  undo.add(async () => stop());
  metrics.addGauges([read]);
  return metrics;
}
