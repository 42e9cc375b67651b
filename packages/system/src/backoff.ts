/**
 * Options for the waits between attempts. The first wait is `firstMs`. Each further wait is the previous wait times `factor` (default:
 * 2), but at most `longestMs`.
 */
export interface Backoff {
  readonly firstMs: number;
  readonly longestMs: number;
  /** Default: 2. */
  readonly factor?: number;
}

/**
 * Returns the milliseconds to wait after `failures` failed attempts in a row (1: the first attempt has just failed). Changes the wait
 * at random by up to ± 25 %, so that callers that fail at the same time do not retry at the same time. `random` returns 0 ≤ x < 1.
 */
export function backoffMs(backoff: Backoff, failures: number, random: () => number = Math.random): number {
  const { firstMs, longestMs, factor = 2 } = backoff;
  // The exponent is limited to 50 so that the number stays finite. 2^50 times the first wait is longer than every `longestMs`.
  const exact = Math.min(longestMs, firstMs * Math.min(factor ** (failures - 1), 2 ** 50));
  return exact * (0.75 + random() * 0.5);
}

/**
 * Returns the milliseconds in a `Retry-After` header (RFC 9110, 10.2.3: seconds or a date); undefined if the header is missing or
 * malformed.
 */
export function retryAfterMs(header: string | undefined, now: number = Date.now()): number | undefined {
  if (header === undefined) return undefined;
  if (/^\d{1,9}(\.\d+)?$/.test(header.trim())) return Number(header) * 1000;
  const date = Date.parse(header);
  return Number.isNaN(date) ? undefined : Math.max(0, date - now);
}

/** Resolves after `ms`, or rejects with the signal's reason as soon as it is aborted. Runs in browsers too. */
export function delay(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const onAbort = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', onAbort);
      resolve();
    }, ms);
    signal?.addEventListener('abort', onAbort, { once: true });
  });
}
