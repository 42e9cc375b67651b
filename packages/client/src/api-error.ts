import { errorCatalogue, Problem } from '@runyard/contract/errors';

/** An answer that is a problem document. */
export class ApiError extends Error {
  override readonly name: string = 'ApiError';
  readonly status: number;
  readonly problem: Problem;
  constructor(problem: Problem) {
    super(problem.error);
    this.status = problem.status;
    this.problem = problem;
  }
  /** The same request may succeed later. */
  get retryable(): boolean {
    return this.problem.retryable;
  }
}

/** 410: events behind the last id are not kept any more. Begin anew without it, and read what is there now. */
export class EventsGoneError extends ApiError {
  override readonly name = 'EventsGoneError';
}

/** No whole answer: the service is not reached, stopped in the middle of one, said nothing for too long, or sent no JSON. */
export class ConnectionError extends Error {
  override readonly name = 'ConnectionError';
}

/** The 404 of an id that no path can name. */
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

/** The error of an answer that is not 2xx or a redirect; what is no problem document (a proxy's page) is made one. */
export async function errorOf(response: Response): Promise<ApiError> {
  const text = await response.text().catch(() => '');
  const parsed = Problem.safeParse(tryJson(text));
  if (parsed.success) return new ApiError(parsed.data);
  const code = response.status === 429 || response.status === 503 ? 'resource_unavailable' : 'internal_error';
  const { title } = errorCatalogue[code];
  const detail = `HTTP ${response.status} without a problem document: ${text.slice(0, 200)}`;
  return new ApiError({
    type: 'about:blank',
    title,
    status: response.status,
    detail,
    instance: URL.parse(response.url)?.pathname ?? '',
    error: `${title} (${detail})`,
    error_code: code,
    retryable: response.status === 429 || response.status >= 500,
    trace_id: '',
  });
}

function tryJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
