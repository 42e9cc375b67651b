/** SQL that changes the leases of a worker's connection, for the statement that changes the connection's row. */
import { fromNow } from '../from-now.ts';
import { sandboxPhases } from '../transitions/phases.ts';

/** SQL: renews the lease of every execution that the connection holds. The arguments are SQL expressions. */
export const renewLeasesOf = (connectionId: string, leaseSeconds: string): string => `
  UPDATE executions SET lease_until = ${fromNow(leaseSeconds)}
  WHERE connection_id = ${connectionId} AND phase IN ${sandboxPhases}`;

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
