/**
 * SQL conditions that decide which connection of a worker may take which execution. The conditions compare team, pool and key. The worker's
 * name alone is not enough, because each worker chooses its own name.
 */
import { isValidKey, mayConnectToPool, mayRunWorkersIn, mayServeHostedPool } from '../../../team/access/keys/key.ts';
import { configOfRun } from '../../../team/environments/config-of-run.ts';
import { slotPhases } from '../phases.ts';

/**
 * SQL: the key of the connection `c` is valid, the owner of the key may run workers, and the key may serve the pool of the connection:
 * the hosted pool or a pool of the team.
 */
export const hasKey = (c: string): string => `
  EXISTS (SELECT FROM api_keys k WHERE k.id = ${c}.key_id AND ${isValidKey('k')} AND ${mayRunWorkersIn('k', 'k.team_id')}
    AND CASE WHEN ${c}.team_id IS NULL THEN ${mayServeHostedPool('k')}
      ELSE k.team_id = ${c}.team_id AND ${mayConnectToPool('k', `${c}.team_id`, `${c}.worker_id`)} END)`;

/** SQL: the execution `e` belongs to the team and the pool that the connection `c` serves. */
export const isInPool = (e: string, c: string): string => `
  CASE WHEN ${c}.team_id IS NULL THEN ${e}.pool = '' ELSE ${e}.team_id = ${c}.team_id AND ${e}.pool = ${c}.worker_id END`;

/** SQL: the worker's connection `c` takes runs of the pool. The hosted pool is ''; any other pool is the name of a team's own worker. */
export const servesPool = (c: string, pool: string, teamId: string): string =>
  `CASE WHEN ${pool} = '' THEN ${c}.team_id IS NULL ELSE ${c}.worker_id = ${pool} AND ${c}.team_id = ${teamId} END`;

/** SQL: the worker's connection `c` takes new runs. */
export const takesRuns = (c: string): string => `(NOT ${c}.draining AND ${c}.problem IS NULL)`;

/** SQL: the execution `e` belongs to the pool. The team is compared too, because two teams may each have a worker of the same name. */
export const isOfPool = (e: string, pool: string, teamId: string): string =>
  `${e}.pool = ${pool} AND (${pool} = '' OR ${e}.team_id = ${teamId})`;

/**
 * SQL: the execution `e` uses a slot of its worker and counts for its team's limit. An execution that only waits for other runs uses no
 * slot.
 */
export const holdsSlot = (e: string): string =>
  `${e}.is_live AND ${e}.phase IN ${slotPhases} AND (${e}.awaiting_until IS NULL OR ${e}.awaiting_until < clock_timestamp())`;

/**
 * Returns the least depth of a run that may start if a worker or a team already has `live` sandboxes. A run without a parent has the depth
 * 0, and its children have the depth 1.
 *
 * This depth limits the number of sandboxes of a worker and of a team, because slots alone do not limit it. A sandbox that waits for
 * other runs uses no slot, but it uses memory. If the worker cannot freeze the commands of the sandbox, they may also continue.
 * A run at depth d starts only while the number of live sandboxes is below (2 + d) times the number of slots. So a descendant of a
 * waiting run can always start. The number of sandboxes is limited, because the depth is limited.
 */
export const leastDepth = (live: number, slots: number): number =>
  Math.max(0, Math.floor(live / Math.max(1, slots)) - 1);

/** SQL: the result of `leastDepth` for the values of two SQL expressions. */
export const leastDepthSql = (live: string, slots: string): string =>
  `greatest(0, ${live} / greatest(1, ${slots}) - 1)`;

/** SQL: an approval rule of the request `q` names a host. Only workers with the feature `host-rules` may get such a run. */
export const asksAboutHosts = (q: string): string => `${q}.config @? '$.approval_rules[*].host'`;

/**
 * SQL: the environment of the run `r` with the request `q` has services from container images. Only workers with the feature `service-images` may get such a
 * run.
 */
export const startsImages = (r: string): string =>
  `(SELECT ${configOfRun('n', r)} FROM environments n WHERE n.uid = ${r}.environment_id) @? '$.services[*].image ? (@ != null)'`;
