import type { Settings } from '@runyard/contract/settings/settings';
import type { Logger } from 'pino';
import { type Metrics, openMetrics } from '../../platform/metrics/open-metrics.ts';
import { measureProcess } from '../../platform/metrics/process-gauges.ts';
import type { Database } from '../../platform/store/database/database.ts';
import { hostedPool } from '../../runs/executions/queue/measure.ts';
import type { Models } from '../../team/models/models.ts';

/** How often the list of models is read again for a model that it did not have, milliseconds. */
const listAgainMs = 10_000;

/** Returns the function that says whether the service lists a model. */
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

interface MetricParts {
  readonly settings: Settings;
  readonly models: Models;
  readonly db: Pick<Database, 'pool'>;
  readonly log: Logger;
  /** Gets the steps that end the metrics. */
  readonly undo: { add(step: () => Promise<unknown>): void };
}

/** Starts the metrics of the process, if a setting or a variable asks for them. The domains add their gauges later. */
export async function startMetrics({ settings, models, db, log, undo }: MetricParts): Promise<Metrics | undefined> {
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
  const { read, stop } = measureProcess(db.pool);
  undo.add(async () => stop());
  metrics.addGauges([read]);
  return metrics;
}
