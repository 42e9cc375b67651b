/** Bodies of any type, which are streamed to the store. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { type Refusal, refuse, tooBusy } from '../../../platform/serving/refusal.ts';

/** Registers routes in a scope that parses no body. Their handlers read the body with `bytesOf`. */
export function withByteBodies(app: FastifyInstance, register: (scope: FastifyInstance) => void): void {
  app.register(async (scope) => {
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser('*', (_request, _payload, done) => done(null));
    register(scope);
  });
}

/** Returns the unparsed body of a request. If a loop over the body ends early, the connection stays open for the answer. */
export function bytesOf(request: FastifyRequest): AsyncIterable<Uint8Array> {
  return request.raw.iterator({ destroyOnReturn: false });
}

/** Returns a 413 refusal. The rest of the body is not read: the connection ends with the answer. */
export function tooManyBytes(reply: FastifyReply, detail: string): Refusal {
  reply.header('connection', 'close');
  return refuse('invalid_request', { status: 413, detail });
}

/** Returns a 429 refusal. The body is not read: the connection ends with the answer. */
export function uploadBusy(reply: FastifyReply, detail: string): Refusal {
  reply.header('connection', 'close');
  return tooBusy(detail);
}
