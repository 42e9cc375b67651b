/** Finds out which features of S3 the server of a bucket lacks. Servers of other makers lack some of them. */
import type { StoreLog } from '../database/log.ts';
import { reached, reasonOf, statusOf } from './s3-errors.ts';

/** Features of S3 that the store uses only if the server has them. */
export interface BucketFeatures {
  /** The CRC checksums that the SDK adds to writes and asks for in reads. */
  checksums: boolean;
  /** Writes with `If-None-Match: *`, which fail if the object exists. */
  conditions: boolean;
}

type Log = Pick<StoreLog, 'warn'>;

/** Sets of features in the order in which they are tried. */
const sets: readonly Readonly<BucketFeatures>[] = [
  { checksums: true, conditions: true },
  { checksums: true, conditions: false },
  { checksums: false, conditions: true },
  { checksums: false, conditions: false },
];

const lacks = {
  checksums: 'the bucket refuses the checksums of the AWS SDK: this process uses them only where S3 requires them',
  conditions: 'the bucket refuses conditional writes: this process asks first whether an object exists',
} as const;

/**
 * Writes with all features and, while the bucket refuses the write, with fewer of them. `features` gets the first set with which a
 * write succeeds. Throws the first refusal if no write succeeds.
 */
export async function findFeatures(features: BucketFeatures, write: () => Promise<unknown>, log: Log): Promise<void> {
  const before = { ...features };
  let first: unknown;
  for (const set of sets) {
    if (set.checksums && !before.checksums) continue;
    Object.assign(features, set);
    try {
      await write();
    } catch (error) {
      // The condition was not met, because an earlier attempt of the SDK has written the object: the bucket knows conditions.
      if (![409, 412].includes(statusOf(error))) {
        first ??= error;
        if (mayBeAboutFeature(error)) continue;
        break;
      }
    }
    for (const name of ['checksums', 'conditions'] as const)
      if (before[name] && !set[name]) log.warn({ reason: reasonOf(first) }, lacks[name]);
    return;
  }
  Object.assign(features, before);
  throw first;
}

/**
 * Returns true for every refusal except those that have another cause for certain. Servers refuse an unknown header with different codes:
 * 400 InvalidArgument, 400 XAmzContentSHA256Mismatch, 403 SignatureDoesNotMatch, 411, 501 NotImplemented.
 */
function mayBeAboutFeature(error: unknown): boolean {
  const status = statusOf(error);
  if ([401, 404, 429].includes(status) || (error as Error).name === 'AccessDenied') return false;
  return (status >= 400 && status < 500) || status === 501;
}

/**
 * Returns a function that sends a read. If the bucket answers 400, the function sends it again without checksums, and `features` gets
 * no checksums if this read succeeds. Some servers refuse `x-amz-checksum-mode`.
 */
export function makeReader(features: BucketFeatures, log: Log): <T>(send: () => Promise<T>) => Promise<T> {
  return async (send) => {
    try {
      return await send();
    } catch (error) {
      if (statusOf(error) !== 400 || !features.checksums) throw error;
      features.checksums = false;
      try {
        const answer = await send();
        log.warn({ reason: reasonOf(error) }, lacks.checksums);
        return answer;
      } catch {
        features.checksums = true;
        throw error;
      }
    }
  };
}

/** Does a request without which the work can continue. Returns undefined if the bucket refuses it. `name`: its name, for the log. */
export type DoOptional = <T>(name: string, request: Promise<T>) => Promise<T | undefined>;

/** Returns a function that does optional requests, and logs the first refusal of each kind. */
export function makeOptional(log: Log): DoOptional {
  const logged = new Set<string>();
  return async (name, request) => {
    try {
      return await request;
    } catch (error) {
      if (statusOf(error) === 0) return await reached(Promise.reject(error));
      if (!logged.has(name))
        log.warn({ request: name, reason: reasonOf(error) }, 'the bucket refuses an optional request');
      logged.add(name);
      return undefined;
    }
  };
}
