/** Reads the metrics of the queue and of workers. Each part of the statement reads a limited number of index entries. */

import { otherValue } from '@runyard/contract/metrics/metric';
import { type Reading, reading } from '../../../platform/metrics/gauges.ts';
import type { Queryable } from '../../../platform/store/database/database.ts';
import { defineStatement, float, integer, nullable, text } from '../../../platform/store/database/statement.ts';
import { assignedPhases } from '../phases.ts';
import { holdsSlot, takesRuns } from './may-take.ts';

/** Label of the hosted pool, whose name in the database is empty. */
export const hostedPool = 'hosted';

/** Returns the label of a pool. A team's pool that is also called `hosted` gets the label of the group of other pools. */
export const poolLabel = (pool: string): string => {
  if (pool === '') return hostedPool;
  return pool === hostedPool ? otherValue : pool;
};

/** Maximum number of executions that are counted for one pool. */
const mostCounted = 100_000;

/** SQL: number and age of the queued executions that meet a condition and whose pause has ended. */
const queuedWhere = (condition: string) => `
  SELECT count(*) AS depth, extract(epoch FROM clock_timestamp() - min(q.available_at))::float8 AS age FROM (
    SELECT e.available_at FROM executions e WHERE e.is_queued AND ${condition} AND e.available_at <= now() LIMIT ${mostCounted}) q`;

/** `$1`: the names of the pools that have separate rows. The row without a name has the sums of all other pools. */
const measureQueue = defineStatement({
  name: 'measure_queue',
  text: `
    SELECT shown.pool, q.depth, q.age FROM unnest($1::text[]) shown(pool), LATERAL (${queuedWhere('e.pool = shown.pool')}) q
    UNION ALL
    SELECT NULL, q.depth, q.age FROM (${queuedWhere('e.pool <> ALL ($1::text[])')}) q`,
  row: { pool: nullable(text()), depth: integer, age: nullable(float) },
});

const measureWorkers = defineStatement({
  name: 'measure_workers',
  text: `
    SELECT CASE WHEN c.pool = ANY ($1::text[]) THEN c.pool END AS pool, count(*) AS workers,
      coalesce(sum(c.slots) FILTER (WHERE ${takesRuns('c')}), 0)::bigint AS slots,
      count(*) FILTER (WHERE c.problem IS NOT NULL) AS unable, min(c.disk_free_bytes)::float8 AS "freeBytes"
    FROM (
      SELECT CASE WHEN team_id IS NULL THEN '' ELSE worker_id END AS pool, slots, draining, problem, disk_free_bytes
      FROM worker_connections LIMIT ${mostCounted}
    ) c
    GROUP BY 1`,
  row: { pool: nullable(text()), workers: integer, slots: integer, unable: integer, freeBytes: nullable(float) },
});

/** The index `executions_live` has only executions that are assigned and have not ended. */
const measureLive = defineStatement({
  name: 'measure_live_executions',
  text: `
    SELECT e.phase, CASE WHEN e.pool = ANY ($1::text[]) THEN e.pool END AS pool, count(*) AS count,
      count(*) FILTER (WHERE ${holdsSlot('e')}) AS slots
    FROM (SELECT phase, pool, is_live, awaiting_until FROM executions WHERE is_live AND phase IN ${assignedPhases} LIMIT ${mostCounted}) e
    GROUP BY 1, 2`,
  row: { phase: text(), pool: nullable(text()), count: integer, slots: integer },
});

/** Reads queue, workers and slots. `names`: the pools of teams that are shown by name. All other pools together have the label `other`. */
export async function measureQueueAndWorkers(db: Queryable, names: readonly string[]): Promise<Reading[]> {
  const pools = [['', ...names.filter((name) => name !== hostedPool)]];
  const labelOf = (pool: string | null) => ({ pool: pool === null ? otherValue : poolLabel(pool) });
  const [queued, workers, live] = await Promise.all([
    db.query(measureQueue, pools),
    db.query(measureWorkers, pools),
    db.query(measureLive, pools),
  ]);
  const taken = new Map<string | null, number>(queued.map(({ pool }) => [pool, 0]));
  const phases = new Map(['assigned', 'claimed', 'running', 'idle', 'stopping'].map((phase) => [phase, 0]));
  for (const { phase, pool, count, slots } of live) {
    taken.set(pool, (taken.get(pool) ?? 0) + slots);
    phases.set(phase, (phases.get(phase) ?? 0) + count);
  }
  return [
    ...queued.flatMap(({ pool, depth, age }) => [
      reading('runyard_queue_depth', labelOf(pool), depth),
      reading('runyard_queue_age_seconds', labelOf(pool), age ?? 0),
    ]),
    // A pool without workers gets the value 0, because an alert cannot compare a missing value.
    ...queued.flatMap(({ pool }) => {
      const own = workers.find((each) => each.pool === pool);
      return [
        reading('runyard_workers', labelOf(pool), own?.workers ?? 0),
        reading('runyard_workers_unable', labelOf(pool), own?.unable ?? 0),
        ...(own?.freeBytes == null ? [] : [reading('runyard_worker_free_bytes', labelOf(pool), own.freeBytes)]),
        reading('runyard_worker_slots', labelOf(pool), own?.slots ?? 0),
        reading('runyard_worker_slots_taken', labelOf(pool), taken.get(pool) ?? 0),
      ];
    }),
    ...[...phases].map(([phase, count]) => reading('runyard_executions', { phase }, count)),
  ];
}
