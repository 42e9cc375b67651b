import { backoffMs, delay, retryAfterMs } from '@runyard/system/backoff';
import type { ServiceConnection, ServiceRequest } from './connection.ts';
import { AnswerTooLarge, ServiceRefusal, Superseded, UnreadableBody } from './errors.ts';

export interface RetryOptions {
  /** First and longest wait between two tries. */
  readonly firstRetryMs?: number | undefined;
  readonly maxRetryMs?: number | undefined;
}

export interface RetriedRequest {
  /** Called for each try, because a body that is a stream can be sent only once. */
  readonly request: () => ServiceRequest;
  /** Maximum size of the answer. */
  readonly maxBytes: number;
  readonly signal?: AbortSignal | undefined;
  /** Statuses after which this call is not repeated but rejects as refused. Other calls are repeated after these statuses. */
  readonly finalStatuses?: readonly number[] | undefined;
}

/** Errors after which a call is not repeated. */
const finalErrors = [Superseded, ServiceRefusal, AnswerTooLarge, UnreadableBody] as const;

/** Maximum number of bytes that are read of the body of an error answer. */
const maxErrorBytes = 64 * 1024;

/** Maximum wait after the service's `Retry-After`. */
const longestRetryAfterMs = 60_000;

/** Returns whether a request is repeated after an answer with this status. */
export const isRepeated = (status: number): boolean => status >= 500 || status === 408 || status === 429;

/** Returns the milliseconds to wait after `failures` failed tries in a row (1: the first try has just failed). */
export function waitBeforeNext(
  failures: number,
  retryAfter?: string,
  { firstRetryMs = 100, maxRetryMs = 5_000 }: RetryOptions = {},
): number {
  const waitMs = backoffMs({ firstMs: firstRetryMs, longestMs: maxRetryMs }, failures);
  return Math.max(waitMs, Math.min(retryAfterMs(retryAfter) ?? 0, longestRetryAfterMs));
}

/**
 * Returns a function that repeats a request until the service answers it, and resolves with the body of the answer. It rejects with
 * `Superseded`, `ServiceRefusal`, `AnswerTooLarge`, `UnreadableBody`, or the reason of an aborted `signal`.
 */
export function retryingCall(
  connection: ServiceConnection,
  retry: RetryOptions,
): (options: RetriedRequest) => Promise<Buffer> {
  return async ({ request: makeRequest, maxBytes, signal, finalStatuses = [] }) => {
    for (let attempt = 1; ; attempt++) {
      signal?.throwIfAborted();
      const request = makeRequest();
      let retryAfter: string | undefined;
      try {
        const answer = await connection.call(request, (status) => (status < 300 ? maxBytes : maxErrorBytes));
        const { status, body } = answer;
        if (status >= 200 && status < 300) return body;
        if (status === 401)
          throw new Superseded('the run token is no longer valid: the execution was ended or superseded');
        if (finalStatuses.includes(status) || !isRepeated(status))
          throw new ServiceRefusal(status, request.path, body.toString());
        retryAfter = answer.retryAfter;
      } catch (error) {
        if (finalErrors.some((kind) => error instanceof kind)) throw error;
        signal?.throwIfAborted();
      }
      await delay(waitBeforeNext(attempt, retryAfter, retry), signal);
    }
  };
}
