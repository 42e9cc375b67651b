/** Keeps token buckets in memory: one for each key and one for each team. A bucket is full at first and is refilled evenly. */

/** Size of a bucket. `quota`: number of requests that are allowed at once, and number that is refilled in each time window. */
export interface RatePolicy {
  readonly quota: number;
  readonly windowSeconds: number;
}

/** The state of a bucket after a request. */
export interface BucketState {
  /** Number of further requests that are allowed now. */
  readonly remaining: number;
  /**
   * Seconds until the bucket is full, or, if the bucket is empty, until one request is allowed; at least 1 while the bucket is not full.
   */
  readonly resetSeconds: number;
}

export interface Buckets {
  /** Returns the number of remaining requests, and counts no request. `now` is in milliseconds. */
  read(id: string, now: number): BucketState;
  /** Counts one request. The caller has checked that the bucket allows one. */
  take(id: string, now: number): BucketState;
}

interface Bucket {
  tokens: number;
  at: number;
}

/**
 * Above this number of buckets, the least recently used one is removed. When its owner sends another request, the owner
 * gets a new, full bucket.
 */
export function makeBuckets({ quota, windowSeconds }: RatePolicy, maxBuckets = 20_000): Buckets {
  const perMs = quota / (windowSeconds * 1000);
  const buckets = new Map<string, Bucket>();

  const tokensOf = (bucket: Bucket | undefined, now: number): number =>
    bucket ? Math.min(quota, bucket.tokens + Math.max(0, now - bucket.at) * perMs) : quota;

  const stateOf = (tokens: number): BucketState => {
    const missing = tokens < 1 ? 1 - tokens : quota - tokens;
    return { remaining: Math.floor(tokens), resetSeconds: Math.ceil(missing / perMs / 1000) };
  };

  return {
    read: (id, now) => stateOf(tokensOf(buckets.get(id), now)),
    take: (id, now) => {
      const tokens = Math.max(0, tokensOf(buckets.get(id), now) - 1);
      // A Map keeps the order of insertion, and each use inserts the bucket again. So the first bucket of the Map is the least recently
      // used one.
      buckets.delete(id);
      buckets.set(id, { tokens, at: now });
      if (buckets.size > maxBuckets) {
        const [oldest] = buckets.keys();
        if (oldest !== undefined) buckets.delete(oldest);
      }
      return stateOf(tokens);
    },
  };
}
