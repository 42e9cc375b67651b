import { isAttempt } from '../run-tokens/attempt.ts';
import { livePhases } from '../transitions/phases.ts';

/** Names the parameters of a statement that renews a lease. */
interface RenewalParameters {
  readonly executionId: string;
  readonly leaseSeconds: string;
  readonly tokenHash: string;
}

/**
 * Returns SQL that renews the lease of an execution `e` because its agent called, and records the call. A `RETURNING` clause can
 * follow. It changes no row where the attempt is over.
 */
export const renewLeaseByAgent = ({ executionId, leaseSeconds, tokenHash }: RenewalParameters): string => `
    UPDATE executions e SET agent_seen_at = clock_timestamp(),
      lease_until = CASE WHEN phase IN ${livePhases}
        THEN greatest(lease_until, clock_timestamp() + make_interval(secs => ${leaseSeconds}::float8)) ELSE lease_until END
    WHERE e.id = ${executionId} AND ${isAttempt('e', tokenHash)}`;
