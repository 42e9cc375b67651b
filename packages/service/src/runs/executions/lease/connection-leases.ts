/** SQL that changes the leases of a worker's connection, for the statement that changes the connection's row. */
import { fromNow } from '../from-now.ts';
import { sandboxPhases } from '../transitions/phases.ts';

/**
 * SQL: renews the lease of every execution that the connection holds. The arguments are SQL expressions.
 *
 * The connection of our own worker, which has an instance, stands for its sandboxes: the worker reports the end of each. A public worker
 * may have handed the task to another machine, or have forgotten it at its restart. So its connection renews a lease only for
 * `startSeconds` after the claim, or for `silentSeconds` after the last call of the agent, and never that of a stopping execution.
 */
export const renewLeasesOf = (
  connectionId: string,
  {
    leaseSeconds,
    startSeconds,
    silentSeconds,
  }: Readonly<Record<'leaseSeconds' | 'startSeconds' | 'silentSeconds', string>>,
): string => `
  UPDATE executions SET lease_until = CASE WHEN worker_instance IS NOT NULL THEN ${fromNow(leaseSeconds)}
    ELSE greatest(lease_until, least(${fromNow(leaseSeconds)},
      coalesce(agent_seen_at + make_interval(secs => ${silentSeconds}::float8), claimed_at + make_interval(secs => ${startSeconds}::float8)))) END
  WHERE connection_id = ${connectionId} AND phase IN ${sandboxPhases} AND (worker_instance IS NOT NULL OR phase <> 'stopping')`;

/**
 * Time after its limit in which a sandbox that no worker adopted surely ends. A lease lasts this much longer than the sandbox, so that
 * no execution counts as lost while its processes may live.
 */
const endSeconds = 15;

/**
 * SQL: gives the executions of a lost connection the grace in which the worker may connect again. If sandboxes continue without their
 * worker, the lease lasts until they have ended. `adoptSeconds` is 0 if they end with it.
 */
export const shortenLeasesOf = (connectionId: string, graceSeconds: string, adoptSeconds: string): string => `
  UPDATE executions SET lease_until = CASE WHEN ${adoptSeconds} > 0
    THEN clock_timestamp() + greatest(make_interval(secs => ${graceSeconds}::float8), make_interval(secs => ${adoptSeconds} + ${endSeconds}))
    ELSE least(lease_until, ${fromNow(graceSeconds)}) END
  WHERE connection_id = ${connectionId} AND phase IN ${sandboxPhases}`;
