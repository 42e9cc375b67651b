import { errorCatalogue } from '@runyard/contract/wire/error-catalogue';
import type { Problem } from '@runyard/contract/wire/errors';
import { answersOfProxies } from '@runyard/system/answers-of-proxies';
import { readText } from './silence.ts';

/** The service answered with a problem document. */
export class ApiError extends Error {
  override readonly name: string = 'ApiError';
  readonly status: number;
  readonly problem: Problem;
  /** Number of seconds in the header `Retry-After`: the same request may succeed after this time. */
  readonly retryAfterSeconds: number | undefined;
  /** When this error was made, in milliseconds since 1970. */
  readonly at = Date.now();
  constructor(problem: Problem, retryAfterSeconds?: number) {
    super(problem.error);
    this.status = problem.status;
    this.problem = problem;
    this.retryAfterSeconds = retryAfterSeconds;
  }
  /** True if the same request may succeed later. */
  get retryable(): boolean {
    return this.problem.retryable;
  }
}

/**
 * Status 410: the service no longer has the events after `lastEventId`. The caller can read the current state and follow the stream again
 * without `lastEventId`.
 */
export class EventsGoneError extends ApiError {
  override readonly name = 'EventsGoneError';
}

/** The service could not be reached, or its answer was incomplete, took too long, or was not JSON. */
export class ConnectionError extends Error {
  override readonly name = 'ConnectionError';
}

/** Returns a 404 error without a request, for an id that cannot be part of a path. */
export function unknownId(parameter: string, value: string): ApiError {
  const { title } = errorCatalogue.resource_not_found;
  const detail = `${parameter}: ${JSON.stringify(value)} is not an id`;
  return new ApiError({
    type: 'about:blank',
    title,
    status: 404,
    detail,
    instance: '',
    error: `${title} (${detail})`,
    error_code: 'resource_not_found',
    retryable: false,
    trace_id: '',
  });
}

/** An answer with status 400 or above. */
export interface ErrorAnswer {
  readonly status: number;
  readonly url: string;
  /** Body of the answer; empty if it could not be read. */
  readonly text: string;
  /** The header `Retry-After`. */
  readonly retryAfter: string | null | undefined;
}

/** Reads the answer of fetch with status 400 or above. */
export async function readError(response: Response): Promise<ErrorAnswer> {
  const { status, url, headers } = response;
  return {
    status,
    url,
    text: await readText(response.body ?? [], () => {}).catch(() => ''),
    retryAfter: headers.get('retry-after'),
  };
}

/**
 * Returns the error of an answer with status 400 or above. If the body is not a problem document (for example the page of a proxy),
 * makes a problem document. Does not check the body with the contract's schemas but by hand, because loading the schema library would
 * take most of the run time of a short program.
 */
export function errorOf({ status, url, text, retryAfter }: ErrorAnswer): ApiError {
  const document = tryJson(text);
  // The header may also be a date (RFC 9110, section 10.2.3). The service and the usual proxies send seconds.
  const seconds = /^\d{1,9}$/.test(retryAfter ?? '') ? Number(retryAfter) : undefined;
  if (isProblem(document)) return new ApiError(document, seconds);
  const code =
    status === 429 || status === 503 ? 'resource_unavailable' : status === 413 ? 'invalid_request' : 'internal_error';
  const { title } = errorCatalogue[code];
  const detail = answersOfProxies[status] ?? `HTTP ${status} without a problem document: ${text.slice(0, 200)}`;
  return new ApiError(
    {
      type: 'about:blank',
      title,
      status,
      detail,
      instance: URL.parse(url)?.pathname ?? '',
      error: `${title} (${detail})`,
      error_code: code,
      retryable: status === 429 || status >= 500,
      trace_id: '',
    },
    seconds,
  );
}

function isProblem(document: unknown): document is Problem {
  if (typeof document !== 'object' || document === null) return false;
  const { status, error, error_code, retryable } = document as Partial<Problem>;
  return (
    Number.isInteger(status) &&
    typeof error === 'string' &&
    typeof retryable === 'boolean' &&
    typeof error_code === 'string' &&
    Object.hasOwn(errorCatalogue, error_code)
  );
}

function tryJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
