/** Converts the error of a request into texts for the person. */

import { ApiError, ConnectionError } from '@runyard/client';

/** The parts of a failure, in the order on the page. */
export interface Failure {
  /** One text with the reason of the failure and the next step for the person. */
  readonly detail: string;
  /** The kind of error in a few words. */
  readonly title?: string;
  /** The members of the request that are wrong. Each key is the path of a member, and each value is the fault. */
  readonly members: ReadonlyMap<string, { readonly message: string; readonly suggestion?: string }>;
  readonly isRetryable: boolean;
  /** Time in milliseconds before which the service refuses a repeated request. */
  readonly retryAt?: number;
  /** Page that explains the error. */
  readonly helpPath?: string;
  readonly traceId?: string;
  /** Page on which the person can grant access or change a setting. */
  readonly actionUrl?: string;
}

/** A failure whose message is a text for the person. */
export class PlainFailure extends Error {}

/** Returns the texts for an error that a request threw. */
export function failureOf(error: unknown): Failure {
  if (error instanceof ApiError) {
    const { problem } = error;
    const members = (problem.errors ?? []).map(
      ({ path, message, suggestion }) =>
        [path, { message, ...(suggestion === undefined ? {} : { suggestion }) }] as const,
    );
    const actionUrl = problem.auth_url ?? problem.setup_url;
    return {
      detail: problem.detail ?? problem.title,
      ...(problem.detail === undefined ? {} : { title: problem.title }),
      members: new Map(members),
      isRetryable: error.retryable,
      ...(error.retryAfterSeconds === undefined ? {} : { retryAt: error.at + error.retryAfterSeconds * 1000 }),
      helpPath: `/errors/${problem.error_code.replaceAll('_', '-')}`,
      ...(problem.trace_id === '' ? {} : { traceId: problem.trace_id }),
      ...(actionUrl === undefined ? {} : { actionUrl }),
    };
  }
  const detail =
    error instanceof ConnectionError
      ? 'The service does not answer. The page tries again by itself.'
      : error instanceof PlainFailure
        ? error.message
        : `The page has a fault: ${error instanceof Error ? error.message : String(error)}`;
  return { detail, members: new Map(), isRetryable: error instanceof ConnectionError };
}

/** Returns true if a repeated request may succeed: after a lost connection, or if the service was busy. */
export const isPassing = (error: unknown): boolean =>
  error instanceof ConnectionError || (error instanceof ApiError && error.retryable);

/** Longest time in seconds that a query waits between two tries. If the service asks for more time, the page shows the problem instead. */
const longestWaitSeconds = 10;

/** Returns true if a query should repeat its request by itself. A refused request is not repeated, because it would be refused again. */
export const isSoonPassing = (error: unknown): boolean =>
  isPassing(error) && !(error instanceof ApiError && (error.retryAfterSeconds ?? 0) > longestWaitSeconds);

/** Returns the time in milliseconds after which a query repeats its request: the time that the service asked for, or longer each time. */
export const waitOf = (failures: number, error: unknown): number =>
  Math.max(
    (error instanceof ApiError && error.retryAfterSeconds ? error.retryAfterSeconds : 0) * 1000,
    Math.min(longestWaitSeconds * 1000, 500 * 2 ** failures),
  );

/** Returns the status of the answer; undefined if there was no answer. */
export const statusOf = (error: unknown): number | undefined => (error instanceof ApiError ? error.status : undefined);
