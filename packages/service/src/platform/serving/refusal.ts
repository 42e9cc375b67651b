import { errorCatalogue } from '@runyard/contract/wire/error-catalogue';
import type { ErrorCode } from '@runyard/contract/wire/errors';
import type { Fault } from '../fault.ts';

export interface RefusalOptions {
  readonly detail?: string;
  /** Present if the catalogue's status does not fit: 405, 413, 415. */
  readonly status?: number;
  readonly errors?: readonly Fault[];
  readonly headers?: Readonly<Record<string, string>>;
}

/** An expected outcome that is an error to the client: handlers return it, hooks and parsers throw it. */
export class Refusal extends Error {
  readonly code: ErrorCode;
  readonly options: RefusalOptions;
  constructor(code: ErrorCode, options: RefusalOptions) {
    super(options.detail ?? errorCatalogue[code].title);
    this.code = code;
    this.options = options;
    // Fastify reads this member of an error that a hook or a parser throws.
    Object.defineProperty(this, 'statusCode', { value: options.status ?? errorCatalogue[code].status });
  }
}

/** Makes a refusal with the status of the code, or `options.status`. */
export function refuse(code: ErrorCode, options: RefusalOptions = {}): Refusal {
  return new Refusal(code, options);
}

/** Returns a 404 refusal that does not reveal whether the thing exists in another team. */
export const notFound = (what: string): Refusal =>
  refuse('resource_not_found', {
    detail: `There is no such ${what}, or it belongs to another team.`,
  });

/** Returns a 400 refusal with the wrong members; the detail repeats the first of them. */
export function invalid(errors: readonly Fault[]): Refusal {
  const [first] = errors;
  const detail = first && (first.path ? `${first.path}: ${first.message}` : first.message);
  return refuse('invalid_request', { errors: errors.slice(0, 50), ...(detail ? { detail } : {}) });
}

/** 400 for a cursor that was made for another list or another query. */
export const wrongCursor = (): Refusal =>
  invalid([{ path: 'cursor', message: 'is not a cursor of this list; send the query of the page before' }]);

/** Seconds after which a client should repeat a request that was refused because of too much work in progress. */
export const busyRetrySeconds = 2;

/** Returns a 429 refusal: the caller, or the service as a whole, has reached its limit of simultaneous work. */
export const tooBusy = (detail: string): Refusal =>
  refuse('resource_unavailable', {
    detail: `${detail} Send this request again in ${busyRetrySeconds} s.`,
    headers: { 'retry-after': String(busyRetrySeconds) },
  });
