/** Stores the outages of providers, which all service processes share. */
import type { Queryable } from '../../platform/store/database/database.ts';
import { defineStatement, text } from '../../platform/store/database/statement.ts';
import type { Outage } from './choices.ts';
import type { ProviderName } from './providers.ts';
import { forgetModelChoices } from './team-models.ts';

/** Minimum number of seconds between the end of an outage and the beginning of the provider's next outage. */
export const quietSeconds = 30;
/** If an outage ended at least this number of seconds ago, the next outage begins with the shortest interval between probes again. */
const forgivenSeconds = 600;
const longestProbeSeconds = 300;

/** SQL: time until the next probe: 5, 10, 20, … 300 seconds. */
const backoff = (probes: string): string =>
  `least(${longestProbeSeconds}, 5 * 2 ^ least(${probes}, 6)) * interval '1 second'`;

const begin = defineStatement({
  name: 'begin_model_outage',
  text: `
    INSERT INTO model_outages AS o (provider, began_at, reason, next_probe_at)
    VALUES ($1, clock_timestamp(), $2, clock_timestamp() + ${backoff('0')})
    ON CONFLICT (provider) DO UPDATE SET began_at = clock_timestamp(), ended_at = NULL, reason = excluded.reason,
      probes = CASE WHEN o.ended_at > clock_timestamp() - interval '${forgivenSeconds} seconds' THEN o.probes ELSE 0 END,
      next_probe_at = clock_timestamp()
        + CASE WHEN o.ended_at > clock_timestamp() - interval '${forgivenSeconds} seconds' THEN ${backoff('o.probes')} ELSE ${backoff('0')} END
    WHERE o.ended_at < clock_timestamp() - interval '${quietSeconds} seconds'
    RETURNING provider`,
  row: { provider: text() },
});

/**
 * Ends the outage that the caller saw, but not a later outage. If $3 is true, the next outage begins with the shortest interval between
 * probes.
 */
const end = defineStatement({
  name: 'end_model_outage',
  text: `
    UPDATE model_outages SET ended_at = clock_timestamp(), probes = CASE WHEN $3::boolean THEN 0 ELSE probes END WHERE provider = $1 AND began_at = $2::timestamptz AND ended_at IS NULL
    RETURNING provider`,
  row: { provider: text() },
});

/** If several processes execute this statement at once, only one of them gets each probe. */
const claimProbes = defineStatement({
  name: 'claim_model_probes',
  text: `
    UPDATE model_outages SET probes = probes + 1, next_probe_at = clock_timestamp() + ${backoff('probes + 1')}
    WHERE ended_at IS NULL AND next_probe_at <= clock_timestamp() AND provider = ANY ($1::text[])
    RETURNING provider, began_at::text AS "beganAt"`,
  row: { provider: text<ProviderName>(), beganAt: text() },
});

/** Finds an outage whose provider has to be probed. */
export const dueProbes = defineStatement({
  name: 'find_due_model_probes',
  text: 'SELECT FROM model_outages WHERE ended_at IS NULL AND next_probe_at <= clock_timestamp() LIMIT 1',
  row: {},
});

/** Begins an outage. Returns false if the provider already has an outage, or had an outage a moment ago. */
export async function beginOutage(db: Queryable, provider: ProviderName, reason: string): Promise<boolean> {
  const begun = await db.query(begin, [provider, reason]);
  forgetModelChoices(db);
  return begun.length > 0;
}

/**
 * Ends an outage. Returns false if the outage has already ended. `how`: a successful probe also resets the interval between probes, because
 * a probe proves more than the request of a run.
 */
export async function endOutage(
  db: Queryable,
  outage: Pick<Outage, 'provider' | 'beganAt'>,
  how: 'by_request' | 'by_probe',
): Promise<boolean> {
  const ended = await db.query(end, [outage.provider, outage.beganAt, how === 'by_probe']);
  forgetModelChoices(db);
  return ended.length > 0;
}

/** Returns the outages whose providers the caller must probe now. */
export async function claimOutageProbes(
  db: Queryable,
  providers: readonly ProviderName[],
): Promise<readonly Pick<Outage, 'provider' | 'beganAt'>[]> {
  return await db.query(claimProbes, [providers]);
}
