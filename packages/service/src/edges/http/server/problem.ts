/** The only code that turns refusals and exceptions into `application/problem+json`. */

import type { Socket } from 'node:net';
import { maxChangesOfAuthorPerDay, maxChangesPerDay } from '@runyard/contract/limits';
import { errorCatalogue } from '@runyard/contract/wire/error-catalogue';
import { errorExplanations } from '@runyard/contract/wire/error-explanations';
import { errorSlug, type Problem } from '@runyard/contract/wire/errors';
import { http } from '@runyard/system/node-http';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Refusal, refuse } from '../../../platform/serving/refusal.ts';
import { sqlState } from '../../../platform/store/database/connections.ts';
import { StoreUnavailable, type UnavailableReason } from '../../../platform/store/database/unavailable.ts';
import { AttemptOver, stoppingAttempt, supersededAttempt } from '../../../runs/executions/run-tokens/attempt.ts';
import { TooManyChanges } from '../../../team/access/audit/record.ts';
import { MadeByPerson } from '../../../team/access/ownership.ts';
import { ShareTaken } from '../../../team/access/teams/has-room.ts';
import { shownPath } from './shown-path.ts';
import { startTrace, traceOf } from './trace.ts';

/** Returns the 429 refusal for more changes than a team may make in a day. */
const tooManyChanges = (): Refusal =>
  refuse('resource_unavailable', {
    detail: `You have made ${maxChangesOfAuthorPerDay} changes today (UTC), or the team without its owners ${maxChangesPerDay}. Cancels, deletes and lowered roles still work, and owners who made fewer changes can continue.`,
    headers: { 'retry-after': '3600' },
  });

/** Returns the body of the answer. `path` is the path of the request, without its query. */
export function problemOf(refusal: Refusal, baseUrl: string, path: string, traceId: string): Problem {
  const kind = errorCatalogue[refusal.code];
  const { detail } = refusal.options;
  const status = refusal.options.status ?? kind.status;
  // The contract requires `errors` on each 400. If no single member is wrong, the entry is about the whole request.
  const whole = status === 400 ? [{ path: '', message: detail ?? errorExplanations[refusal.code] }] : [];
  const errors = refusal.options.errors ?? whole;
  return {
    type: `${baseUrl}/errors/${errorSlug(refusal.code)}`,
    title: kind.title,
    status,
    ...(detail ? { detail } : {}),
    instance: path,
    error: detail ? `${kind.title} (${detail})` : kind.title,
    error_code: refusal.code,
    retryable: kind.retryable,
    trace_id: traceId,
    ...(errors.length > 0 ? { errors: [...errors] } : {}),
  };
}

/** Sends the problem document of a refusal. */
export function sendRefusal(
  refusal: Refusal,
  request: FastifyRequest,
  reply: FastifyReply,
  baseUrl: string,
): FastifyReply {
  const problem = problemOf(refusal, baseUrl, shownPath(request), traceOf(request).traceId);
  if (problem.status === 401) reply.header('www-authenticate', 'Bearer');
  for (const [name, value] of Object.entries(refusal.options.headers ?? {})) reply.header(name, value);
  return reply
    .code(problem.status)
    .header('cache-control', 'no-store')
    .type('application/problem+json; charset=utf-8')
    .send(JSON.stringify(problem));
}

/** Retry-After of a 503, seconds. A restart of the database takes a few seconds; a full disk waits for a person. */
const retryAfterSeconds: Readonly<Record<UnavailableReason, string>> = {
  database: '2',
  disk: '10',
  blobs: '5',
};

/** 503: database or disk cannot do the work now. `detail` says which one, and what to do. */
export function unavailable(reason: UnavailableReason, detail: string): Refusal {
  const headers = { 'retry-after': retryAfterSeconds[reason] };
  return refuse('resource_unavailable', { status: 503, detail, headers });
}

const unavailableDetails: Readonly<Record<UnavailableReason, string>> = {
  database: 'The database cannot be reached at the moment. Send the request again after Retry-After seconds.',
  disk: 'The disk of the service is full: nothing can be stored until there is room again. Reading works.',
  blobs:
    'The bucket in which files are stored (RUNYARD_BLOBS) does not answer at the moment. Send the request again after Retry-After seconds.',
};

const madeByPerson =
  'A person made this object, so an agent key cannot change or delete it. Ask a person to do that, or create and use your own object.';

interface HttpError {
  readonly code?: unknown;
  readonly statusCode?: unknown;
  readonly message?: unknown;
}

/** Returns the refusal for an exception; null: an unexpected exception, to be logged and answered with `internal_error`. */
export function refusalOf(error: unknown): Refusal | null {
  if (error instanceof Refusal) return error;
  if (error instanceof AttemptOver) return error.why === 'stopping' ? stoppingAttempt() : supersededAttempt();
  if (error instanceof TooManyChanges) return tooManyChanges();
  if (error instanceof ShareTaken) return refuse('conflict', { detail: error.message });
  if (error instanceof MadeByPerson) return refuse('not_authorized', { detail: madeByPerson });
  if (error instanceof StoreUnavailable) return unavailable(error.reason, unavailableDetails[error.reason]);
  const { code, statusCode, message } = (error ?? {}) as HttpError;
  switch (code) {
    case 'FST_ERR_CTP_BODY_TOO_LARGE':
      return refuse('invalid_request', { status: 413, detail: 'The body is too large.' });
    case 'FST_ERR_CTP_INVALID_MEDIA_TYPE':
      return refuse('invalid_request', {
        status: 415,
        detail: 'The body is not of a type that this endpoint takes. Send it with Content-Type: application/json.',
      });
    case 'FST_ERR_BAD_URL':
      return refuse('invalid_request', { detail: 'The path is not a valid URL path.' });
    // No object has an id of this length.
    case 'FST_ERR_MAX_PARAM_LENGTH':
      return refuse('resource_not_found', { detail: 'There is nothing at this path.' });
    default:
  }
  // 22021, 22P05: text that PostgreSQL cannot store. Earlier checks refuse requests with such text; this is a second protection.
  if (['22021', '22P05'].includes(sqlState(error) ?? '')) {
    return refuse('invalid_request', { detail: 'A string holds a character that cannot be stored.' });
  }
  if (typeof code === 'string' && code.startsWith('FST_') && typeof statusCode === 'number' && statusCode < 500) {
    return refuse('invalid_request', { status: statusCode, detail: String(message) });
  }
  return null;
}

/** Statuses by `code` of the errors of Node's HTTP parser; all other codes: 400. */
const refusals: Readonly<Record<string, { readonly status: number; readonly detail: string }>> = {
  HPE_HEADER_OVERFLOW: { status: 431, detail: 'The request line and the headers are larger than 16 KB together.' },
  HPE_CHUNK_EXTENSIONS_OVERFLOW: { status: 413, detail: 'The extensions of the chunks are too large.' },
  ERR_HTTP_REQUEST_TIMEOUT: { status: 408, detail: 'The request was not sent in time.' },
};

/**
 * Sends a problem document to a client whose bytes Node could not parse as a request, and closes the connection. At this point, there is
 * neither a request nor a reply.
 */
export function answerUnreadable(error: Error & { readonly code?: string }, socket: Socket, baseUrl: string): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  const { status, detail } = refusals[error.code ?? ''] ?? { status: 400, detail: 'The request is not valid HTTP.' };
  const { traceId } = startTrace(undefined);
  const body = JSON.stringify(problemOf(refuse('invalid_request', { status, detail }), baseUrl, '/', traceId));
  const head = [
    `HTTP/1.1 ${status} ${http.STATUS_CODES[status]}`,
    `x-request-id: ${traceId}`,
    'x-content-type-options: nosniff',
    'cache-control: no-store',
    'content-type: application/problem+json; charset=utf-8',
    `content-length: ${Buffer.byteLength(body)}`,
    'connection: close',
  ];
  // Closes the connection without waiting for a client that continues to send.
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`, () => socket.destroy());
}
