import { errorCatalogue } from '@runyard/contract/wire/error-catalogue';
import type { ErrorCode } from '@runyard/contract/wire/errors';
import type { Fault } from '../fault.ts';

export interface RefusalOptions {
  readonly detail?: string;
  /** Status of the answer, if it differs from the status in the catalogue: 405, 413 or 415. */
  readonly status?: number;
  readonly errors?: readonly Fault[];
  readonly headers?: Readonly<Record<string, string>>;
}

/** An expected outcome that the client gets as an error. Route handlers return a refusal; hooks and parsers throw it. */
export class Refusal extends Error {
  readonly code: ErrorCode;
  readonly options: RefusalOptions;
  constructor(code: ErrorCode, options: RefusalOptions) {
    super(options.detail ?? errorCatalogue[code].title);
    this.code = code;
    this.options = options;
    // If a hook or a parser throws the refusal, Fastify takes the status of the answer from this member.
    Object.defineProperty(this, 'statusCode', { value: options.status ?? errorCatalogue[code].status });
  }
}

/** Makes a refusal with the status of the code, or `options.status`. */
export function refuse(code: ErrorCode, options: RefusalOptions = {}): Refusal {
  return new Refusal(code, options);
}

/** Returns a 404 refusal. The answer does not reveal whether the object exists in another team. */
export const notFound = (what: string): Refusal =>
  refuse('resource_not_found', {
    detail: `There is no such ${what}, or it belongs to another team.`,
  });

/** Returns a 400 refusal that lists the wrong members of a request. The detail repeats the first error. */
export function invalid(errors: readonly Fault[]): Refusal {
  const [first] = errors;
  const detail = first && (first.path ? `${first.path}: ${first.message}` : first.message);
  return refuse('invalid_request', { errors: errors.slice(0, 50), ...(detail ? { detail } : {}) });
}

/** Returns the 400 refusal of a cursor that was made for another list or another query. */
export const wrongCursor = (): Refusal =>
  invalid([{ path: 'cursor', message: 'is not a cursor of this list; send the same query as for the previous page' }]);

/** Returns the 503 refusal of a restored copy for everybody but owners. */
export const pausedCopy = (): Refusal =>
  refuse('resource_unavailable', {
    status: 503,
    detail:
      'This installation was restored from a backup and is paused. Its keys, roles, invitations and shared links are as old as the backup, so only owners can use it until the operator runs bin/runyard resume.',
    headers: { 'retry-after': '60' },
  });

/** If the service refuses a request because too much work is in progress, the client should repeat the request after this many seconds. */
export const busyRetrySeconds = 2;

/** Returns a 429 refusal: the caller, or the service as a whole, has reached its limit of simultaneous work. */
export const tooBusy = (detail: string): Refusal =>
  refuse('resource_unavailable', {
    detail: `${detail} Send this request again in ${busyRetrySeconds} s.`,
    headers: { 'retry-after': String(busyRetrySeconds) },
  });
