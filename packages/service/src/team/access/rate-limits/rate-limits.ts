/**
 * Limits the requests of each key and of each team, and of callers without a key. Each service process counts separately, so N processes
 * admit at most N times as many requests. The counts are not stored in the database.
 */

import { keylessChecksPerMinute, signOnsPerMinute } from '@runyard/contract/limits';
import type { Settings } from '@runyard/contract/settings/settings';
import { type BucketState, makeBuckets, type RatePolicy } from './buckets.ts';

/** Says for which callers a limit counts the requests together. */
type LimitName = 'key' | 'team' | 'address' | 'total';

/** Headers for the answer to a request with a key, and whether the request may be handled. */
export interface RateOutcome {
  /** `RateLimit-Policy` and `RateLimit`, by draft-ietf-httpapi-ratelimit-headers-10. */
  readonly headers: Readonly<Record<string, string>>;
  /** Present if the request is over a limit. */
  readonly over?: { readonly limit: LimitName; readonly quota: number; readonly retryAfterSeconds: number };
}

export interface RateLimits {
  /** Counts a request of a key. `now` is in milliseconds. */
  count(caller: { readonly keyId: string; readonly teamId: string }, now: number): RateOutcome;
  /** Counts a request without a key, on a route that accepts it. */
  countKeyless(address: string, now: number): RateOutcome;
  /** Counts a sign-in request that makes the service call an identity provider. */
  countSignOn(address: string, now: number): RateOutcome;
}

const windowSeconds = 60;

/** Creates the limits from the settings. The value 0 switches a limit off. */
export function makeRateLimits(
  settings: Pick<Settings, 'RUNYARD_KEY_REQUESTS_PER_MINUTE' | 'RUNYARD_TEAM_REQUESTS_PER_MINUTE'>,
): RateLimits {
  const countKey = makeCounter({
    key: settings.RUNYARD_KEY_REQUESTS_PER_MINUTE,
    team: settings.RUNYARD_TEAM_REQUESTS_PER_MINUTE,
  });
  const countAddress = makeCounter(keylessChecksPerMinute);
  const countSignOns = makeCounter(signOnsPerMinute);
  return {
    count: ({ keyId, teamId }, now) => countKey({ key: keyId, team: teamId }, now),
    countKeyless: (address, now) => countAddress({ address, total: '' }, now),
    countSignOn: (address, now) => countSignOns({ address }, now),
  };
}

/** Returns the function that counts a request against all of the limits, in the given order. */
function makeCounter<N extends LimitName>(
  quotas: Readonly<Record<N, number>>,
): (idOf: Readonly<Record<N, string>>, now: number) => RateOutcome {
  const limits = (Object.entries(quotas) as [N, number][])
    .filter(([, quota]) => quota > 0)
    .map(([name, quota]) => {
      const policy: RatePolicy = { quota, windowSeconds };
      return { name, quota, buckets: makeBuckets(policy) };
    });
  if (limits.length === 0) return () => ({ headers: {} });
  const policies = limits.map(({ name, quota }) => `"${name}";q=${quota};w=${windowSeconds}`).join(', ');
  const headersOf = (states: readonly BucketState[]) => ({
    'ratelimit-policy': policies,
    ratelimit: states
      .map(({ remaining, resetSeconds }, index) => `"${limits[index]?.name}";r=${remaining};t=${resetSeconds}`)
      .join(', '),
  });
  return (idOf, now) => {
    const before = limits.map(({ name, buckets }) => buckets.read(idOf[name], now));
    // A refused request uses no quota, so one key cannot use up the quota of its team.
    const index = before.findIndex(({ remaining }) => remaining < 1);
    const over = limits[index];
    if (over) {
      const retryAfterSeconds = Math.max(1, before[index]?.resetSeconds ?? 1);
      return { headers: headersOf(before), over: { limit: over.name, quota: over.quota, retryAfterSeconds } };
    }
    return { headers: headersOf(limits.map(({ name, buckets }) => buckets.take(idOf[name], now))) };
  };
}
