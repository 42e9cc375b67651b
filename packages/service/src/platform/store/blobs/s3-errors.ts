/** Reads the errors of the SDK of S3. */
import { shorten } from '@runyard/contract/wire/shorten';
import { StoreUnavailable } from '../database/unavailable.ts';

/** Returns the HTTP status of the answer; 0: no answer came. */
export const statusOf = (error: unknown): number => {
  const known = error instanceof StoreUnavailable ? error.cause : error;
  return (known as { $metadata?: { httpStatusCode?: number } } | undefined)?.$metadata?.httpStatusCode ?? 0;
};

/** Returns undefined if the error says that an object is missing, and throws every other error. If the bucket is missing, throws. */
export function absent(error: unknown): undefined {
  const { name } = error as Error;
  if (statusOf(error) === 404 && name !== 'NoSuchBucket') return undefined;
  throw error;
}

/** Statuses with which a bucket answers in normal use: the object is missing, the range is outside of the object, or a condition is not met. */
const plainStatuses = [404, 409, 412, 416];

/**
 * Throws `StoreUnavailable` if the bucket cannot do a request, for example because of a missing connection, wrong credentials, too
 * many requests or an error of the bucket.
 */
export async function reached<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof StoreUnavailable || isPlain(error)) throw error;
    throw new StoreUnavailable('blobs', error instanceof Error ? error : new Error(String(error)));
  }
}

const isPlain = (error: unknown): boolean =>
  plainStatuses.includes(statusOf(error)) && (error as Error).name !== 'NoSuchBucket';

/** Returns the name and the message of an error as one line of at most 300 characters. The texts come from the server of the bucket. */
export function reasonOf(error: unknown): string {
  const { name, message } = error instanceof StoreUnavailable ? (error.cause as Error) : (error as Error);
  const words = [name, message].filter((text, index, all) => text && text !== 'Error' && all.indexOf(text) === index);
  return shorten(words.join(': ').replace(/[\s\p{Cc}]+/gu, ' ') || `status ${statusOf(error)}`, 300);
}
