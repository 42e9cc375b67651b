/** Calls operations of the API inside of this process, with the same checks, limits and records as for a request from outside. */
import { Problem } from '@runyard/contract/wire/errors';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { clientOf } from '../http/server/authorize.ts';
import { readHere } from '../http/server/download.ts';
import type { OperationRequest } from './tool.ts';

export type OperationAnswer =
  | { readonly kind: 'answer'; readonly bytes: Buffer }
  | { readonly kind: 'redirect'; readonly location: string }
  | { readonly kind: 'refused'; readonly status: number; readonly message: string }
  /** The body of the answer is larger than `maxBytes`. */
  | { readonly kind: 'too_large' };

/** Calls an operation as the caller of an MCP request. The answer has at most `maxBytes`. */
export type CallOperation = (request: OperationRequest, maxBytes: number) => Promise<OperationAnswer>;

/** Headers that belong to the caller: its key, its team, its program and its trace. */
const passedOn = ['authorization', 'x-team-uid', 'x-warp-team-uid', 'user-agent', 'traceparent'];

/** Returns the function that calls operations for the sender of `request`. */
export function operationsFor(app: FastifyInstance, request: FastifyRequest): CallOperation {
  const own = Object.fromEntries(
    passedOn.flatMap((name) => (request.headers[name] === undefined ? [] : [[name, request.headers[name]]])),
  );
  return async ({ method, url, body, idempotencyKey }, maxBytes) => {
    const answer = await app.inject({
      method,
      url,
      remoteAddress: clientOf(request).address,
      headers: {
        ...own,
        ...readHere,
        // With this preference, a model that misspells a member gets an error and can try again.
        prefer: 'handling=strict',
        ...(body ? { 'content-type': 'application/json' } : {}),
        ...(idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }),
      },
      ...(body ? { payload: JSON.stringify(body) } : {}),
      payloadAsStream: true,
    });
    const pieces: Buffer[] = [];
    let length = 0;
    for await (const piece of answer.stream()) {
      length += (piece as Buffer).length;
      if (length > maxBytes) {
        // Stops the creation of the answer, which would otherwise wait for a reader.
        answer.raw.res.destroy();
        return { kind: 'too_large' };
      }
      pieces.push(piece as Buffer);
    }
    const bytes = Buffer.concat(pieces);
    const { statusCode: status, headers } = answer;
    if (status >= 400) return { kind: 'refused', status, message: refusalText(bytes, headers['retry-after']) };
    if (typeof headers.location === 'string') return { kind: 'redirect', location: headers.location };
    return { kind: 'answer', bytes };
  };
}

/** Returns the sentences of a problem document. */
function refusalText(bytes: Buffer, retryAfter: unknown): string {
  const parsed = Problem.safeParse(JSON.parse(bytes.toString('utf8')));
  if (!parsed.success) return 'The service refused the call.';
  const { title, detail = title, errors = [], retryable } = parsed.data;
  const further = errors
    .map(({ path, message }) => (path ? `${path}: ${message}` : message))
    .filter((each) => each !== detail);
  return [
    detail,
    ...further,
    ...(retryable && retryAfter !== undefined ? [`Try again after ${String(retryAfter)} seconds.`] : []),
  ].join('\n');
}

/** Reads the object of a signed URL of this service. */
export async function readSigned(call: CallOperation, location: string, maxBytes: number): Promise<OperationAnswer> {
  const { pathname, search } = new URL(location);
  return await call({ method: 'GET', url: pathname + search }, maxBytes);
}
