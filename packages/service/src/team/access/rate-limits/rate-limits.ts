/**
 * Limits the requests of each key and of each team. Each service process counts for itself: N processes admit at most N times as
 * much. Nothing is written to the database.
 */
import type { Settings } from '@runyard/contract/settings/settings';
import { type BucketState, makeBuckets, type RatePolicy } from './buckets.ts';

/** The caller or team whose requests a limit counts. */
type LimitName = 'key' | 'team';

/** Headers that each answer to a key carries, and whether the request may be handled. */
export interface RateOutcome {
  /** `RateLimit-Policy` and `RateLimit`, by draft-ietf-httpapi-ratelimit-headers-10. */
  readonly headers: Readonly<Record<string, string>>;
  /** Present if the request is over a limit. */
  readonly over?: { readonly limit: LimitName; readonly quota: number; readonly retryAfterSeconds: number };
}

export interface RateLimits {
  /** Counts a request of a key. `now` is in milliseconds. */
  count(caller: { readonly keyId: string; readonly teamId: string }, now: number): RateOutcome;
}

const windowSeconds = 60;
const noLimits: RateLimits = { count: () => ({ headers: {} }) };

/** Makes the limits of the settings; 0 switches a limit off. */
export function makeRateLimits(
  settings: Pick<Settings, 'RUNYARD_KEY_REQUESTS_PER_MINUTE' | 'RUNYARD_TEAM_REQUESTS_PER_MINUTE'>,
): RateLimits {
  const all = [
    { name: 'key' as const, quota: settings.RUNYARD_KEY_REQUESTS_PER_MINUTE },
    { name: 'team' as const, quota: settings.RUNYARD_TEAM_REQUESTS_PER_MINUTE },
  ];
  const limits = all
    .filter(({ quota }) => quota > 0)
    .map(({ name, quota }) => {
      const policy: RatePolicy = { quota, windowSeconds };
      return { name, quota, buckets: makeBuckets(policy) };
    });
  if (limits.length === 0) return noLimits;
  const policies = limits.map(({ name, quota }) => `"${name}";q=${quota};w=${windowSeconds}`).join(', ');
  const headersOf = (states: readonly BucketState[]) => ({
    'ratelimit-policy': policies,
    ratelimit: states
      .map(({ remaining, resetSeconds }, index) => `"${limits[index]?.name}";r=${remaining};t=${resetSeconds}`)
      .join(', '),
  });
  return {
    count: ({ keyId, teamId }, now) => {
      const idOf = { key: keyId, team: teamId };
      const before = limits.map(({ name, buckets }) => buckets.read(idOf[name], now));
      // The key's limit is checked first, and a refused request takes nothing, so one key cannot use up the requests of
      // its team.
      const index = before.findIndex(({ remaining }) => remaining < 1);
      const over = limits[index];
      if (over) {
        const retryAfterSeconds = Math.max(1, before[index]?.resetSeconds ?? 1);
        return { headers: headersOf(before), over: { limit: over.name, quota: over.quota, retryAfterSeconds } };
      }
      return { headers: headersOf(limits.map(({ name, buckets }) => buckets.take(idOf[name], now))) };
    },
  };
}
