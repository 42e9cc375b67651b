/**
 * Returns sentences that say why a run waits. The same sentence appears in the API's item of the run, in the API's answer for a
 * conversation that does not exist yet, in the CLI and on the web page.
 */

import { isTerminal } from '@runyard/contract/runs/run-states';
import type { RunState } from '@runyard/contract/runs/states';
import { hostRulesFeature, imagesFeature, serviceImagesFeature } from '@runyard/contract/workers/worker-protocol';
import type { Queryable } from '../../../platform/store/database/database.ts';
import {
  boolean,
  defineStatement,
  float,
  integer,
  nullable,
  text,
  timestamp,
  uuid,
} from '../../../platform/store/database/statement.ts';
import { isRunTypeCancellable } from '../cancel/cancel.ts';
import { waitsAfterInterrupt } from '../idle/idle.ts';
import { slotPhases } from '../phases.ts';
import {
  asksAboutHosts,
  holdsSlot,
  isOfPool,
  leastDepthSql,
  servesPool,
  startsImages,
  takesRuns,
} from '../queue/may-take.ts';
import { waitSentence } from './wait-sentence.ts';

/**
 * The statement uses `unnest`: with `id = ANY`, PostgreSQL's plan would read an index of the team's runs, which has many entries if the
 * team has many runs. The statement reads the team and the pools once for all runs, and only the pools in which one of the runs is queued.
 * A worker that reports no number of slots has no limit.
 */
const readFacts = defineStatement({
  name: 'read_waits',
  text: `
    WITH waiting AS MATERIALIZED (
      SELECT r.id AS run_id, r.state, e.id, e.number, e.pool, e.available_at, e.worker_id, e.sandbox, e.idle_until, e.image, e.depth, e.waits_for_place,
        r.worker_host, r.execution_location, r.source, ${asksAboutHosts('q')} AS asks_hosts, coalesce(${startsImages('r')}, false) AS starts_images
      FROM unnest($2::uuid[]) AS asked (id) JOIN runs r ON r.id = asked.id JOIN run_requests q ON q.run_id = r.id JOIN executions e ON e.id = r.current_execution_id
      WHERE r.team_id = $1
        AND (r.state IN ('QUEUED', 'PENDING', 'CLAIMED') OR (${waitsAfterInterrupt('r', 'e')}))
    ), team AS MATERIALIZED (
      SELECT t.max_concurrent_executions AS team_limit,
        (SELECT count(*) FROM executions b WHERE b.team_id = t.id AND ${holdsSlot('b')})::int AS team_taken,
        (SELECT count(*) FROM executions b WHERE b.team_id = t.id AND b.is_live AND b.phase IN ${slotPhases})::int AS team_live
      FROM teams t WHERE t.id = $1
    ), pools AS MATERIALIZED (
      SELECT p.pool, c.*,
        (SELECT count(*) FROM executions b WHERE ${isOfPool('b', 'p.pool', '$1')} AND ${holdsSlot('b')})::int AS slots_taken
      FROM (SELECT DISTINCT pool FROM waiting WHERE state = 'QUEUED') p, LATERAL (
        SELECT count(*) FILTER (WHERE ${takesRuns('c')})::int AS workers, count(*) FILTER (WHERE c.draining)::int AS leaving_workers,
          min(c.problem) FILTER (WHERE NOT c.draining) AS problem,
          count(*) FILTER (WHERE ${takesRuns('c')} AND c.sandbox->'features' ? '${imagesFeature}')::int AS image_workers,
          count(*) FILTER (WHERE ${takesRuns('c')} AND c.sandbox->'features' ? '${hostRulesFeature}')::int AS host_workers,
          count(*) FILTER (WHERE ${takesRuns('c')} AND c.sandbox->'features' ? '${serviceImagesFeature}')::int AS service_image_workers,
          count(*) FILTER (WHERE ${takesRuns('c')} AND c.sandbox IS NULL)::int AS public_workers,
          coalesce(sum(coalesce(c.slots, 1000)) FILTER (WHERE ${takesRuns('c')}), 0)::int AS slots,
          min(${leastDepthSql('live.count', 'coalesce(c.slots, 1000)')}) FILTER (WHERE ${takesRuns('c')})::int AS least_depth
        FROM worker_connections c CROSS JOIN LATERAL (
          SELECT count(*) AS count FROM executions b WHERE b.connection_id = c.id AND b.is_live AND b.phase IN ${slotPhases}) live WHERE ${servesPool('c', 'p.pool', '$1')}
      ) c
    )
    SELECT w.run_id, w.state, w.pool, extract(epoch FROM w.available_at - clock_timestamp())::float8 AS pause_seconds, w.waits_for_place,
      EXISTS (SELECT FROM executions o WHERE o.run_id = w.run_id AND o.number < w.number AND o.phase <> 'ended') AS has_older,
      team.team_taken, team.team_live, team.team_limit, w.depth, coalesce(pools.least_depth, 0) AS least_depth, coalesce(pools.workers, 0) AS workers, coalesce(pools.leaving_workers, 0) AS leaving_workers, pools.problem,
      w.image, coalesce(pools.image_workers, 0) AS image_workers, coalesce(pools.public_workers, 0) AS public_workers, w.asks_hosts, coalesce(pools.host_workers, 0) AS host_workers, w.starts_images, coalesce(pools.service_image_workers, 0) AS service_image_workers, coalesce(pools.slots, 0) AS slots, coalesce(pools.slots_taken, 0) AS slots_taken, w.worker_id, w.sandbox IS NOT NULL AS has_sandbox,
      step.kind AS step_kind, step.name AS step_name, w.idle_until, w.worker_host, w.execution_location, w.source
    FROM waiting w CROSS JOIN team LEFT JOIN pools ON pools.pool = w.pool LEFT JOIN LATERAL (
      SELECT v.payload->>'kind' AS kind, v.payload->>'name' AS name, v.event_type FROM run_events v
      WHERE w.state = 'CLAIMED' AND v.run_id = w.run_id AND v.execution_number = w.number
        AND v.event_type IN ('setup_step_started', 'setup_step_finished')
      ORDER BY v.seq DESC LIMIT 1
    ) step ON step.event_type = 'setup_step_started'`,
  row: {
    run_id: uuid,
    state: text<RunState>(),
    pool: text(),
    pause_seconds: float,
    waits_for_place: boolean,
    has_older: boolean,
    team_taken: integer,
    team_live: integer,
    team_limit: integer,
    depth: integer,
    least_depth: integer,
    workers: integer,
    leaving_workers: integer,
    problem: nullable(text()),
    image: nullable(text()),
    image_workers: integer,
    public_workers: integer,
    asks_hosts: boolean,
    host_workers: integer,
    starts_images: boolean,
    service_image_workers: integer,
    slots: integer,
    slots_taken: integer,
    worker_id: nullable(text()),
    has_sandbox: boolean,
    step_kind: nullable(text()),
    step_name: nullable(text()),
    idle_until: nullable(timestamp),
    worker_host: nullable(text()),
    execution_location: text(),
    source: text(),
  },
});

/** Returns, for each run that waits, a sentence about the reason. */
export async function readWaits(
  db: Queryable,
  teamId: string,
  runIds: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  if (runIds.length === 0) return new Map();
  const rows = await db.query(readFacts, [teamId, runIds]);
  return new Map(rows.map((row) => [row.run_id, waitSentence({ ...row, can_cancel: isRunTypeCancellable(row) })]));
}

/**
 * Returns a sentence that says why a run of the team has no message yet: the run still waits, has just begun, or ended without a message.
 */
export async function whyNothingWasSaid(
  db: Queryable,
  teamId: string,
  { id, state }: { readonly id: string; readonly state: RunState },
): Promise<string> {
  const waits = (await readWaits(db, teamId, [id])).get(id);
  if (waits !== undefined) return waits;
  return isTerminal(state)
    ? `The run ended as ${state} before its agent said anything; its status_message says why.`
    : 'The agent has begun but has sent no message yet.';
}
