import { configOfRun } from '../../../team/environments/config-of-run.ts';
import { imageOf } from '../../../team/environments/image.ts';

/** Number of the first timeline event of every run. */
export const creationSeq = 1;

/**
 * Returns the SQL of a common table expression that writes the first timeline event of each new run. `relation` names a relation of the
 * runs with the columns `id` and `creation`. `creation` is the payload of the event; null: the event has no payload.
 */
export const insertCreationEvents = (relation: string): string => `
  INSERT INTO run_events (run_id, seq, event_type, state, execution_number, payload)
  SELECT r.id, ${creationSeq}, 'oz_run_created', 'QUEUED', 1, r.creation FROM ${relation} r`;

/**
 * Returns the SQL of a common table expression that queues the first execution of each new run. `relation` names a relation of the runs
 * with the columns `id`, `current_execution_id`, `team_id`, `worker_host` (null: the hosted pool), `environment_id`, `environment_revision`,
 * `ancestor_ids`, `waits_for_place` and `config`. A run uses the image of its runner, or, if the runner has no image, the
 * image of its environment.
 */
export const queueFirstExecutions = (relation: string): string => `
  INSERT INTO executions (id, run_id, team_id, number, phase, pool, depth, waits_for_place, image)
  SELECT r.current_execution_id, r.id, r.team_id, 1, 'queued', coalesce(r.worker_host, ''), cardinality(r.ancestor_ids), r.waits_for_place,
    coalesce(nullif(btrim(r.config #>> '{runner_config,docker_image}'), ''),
      (SELECT ${imageOf(configOfRun('n', 'r', 'r'))} FROM environments n WHERE n.uid = r.environment_id))
  FROM ${relation} r`;

/** Returns the SQL of a query for the names of the pools in which `queueFirstExecutions` queues executions, in the column `pool`. */
export const poolsOfNewRuns = (relation: string): string =>
  `SELECT DISTINCT coalesce(r.worker_host, '') AS pool FROM ${relation} r`;
