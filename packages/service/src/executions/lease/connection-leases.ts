/** SQL that changes the leases of a worker's connection, for the statement of `workers/` that changes the connection's row. */
import { fromNow } from '../from-now.ts';
import { heldPhases } from '../transitions/phases.ts';

/** SQL: renews the lease of every execution that the connection holds. The arguments are SQL expressions. */
export const renewLeasesOf = (connectionId: string, leaseSeconds: string): string => `
  UPDATE executions SET lease_until = ${fromNow(leaseSeconds)}
  WHERE connection_id = ${connectionId} AND phase IN ${heldPhases}`;

/** SQL: leaves the executions of a lost connection no more than the grace in which the worker may connect again. */
export const shortenLeasesOf = (connectionId: string, graceSeconds: string): string => `
  UPDATE executions SET lease_until = least(lease_until, ${fromNow(graceSeconds)})
  WHERE connection_id = ${connectionId} AND phase IN ${heldPhases}`;
