/** Bodies that are bytes of any type, and are streamed to where they are kept. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { tooBusy } from './json-bodies.ts';
import { type Refusal, refuse } from './problem.ts';

/** Registers routes in a scope of their own, where no body is parsed: `bytesOf` reads it. */
export function withByteBodies(app: FastifyInstance, register: (scope: FastifyInstance) => void): void {
  app.register(async (scope) => {
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser('*', (_request, _payload, done) => done(null));
    register(scope);
  });
}

/** The body of such a request. A loop over it that ends early leaves the connection open, for the answer. */
export function bytesOf(request: FastifyRequest): AsyncIterable<Uint8Array> {
  return request.raw.iterator({ destroyOnReturn: false });
}

/** 413. What is still on its way of the body is not read: the connection ends with the answer. */
export function tooManyBytes(reply: FastifyReply, detail: string): Refusal {
  reply.header('connection', 'close');
  return refuse('invalid_request', { status: 413, detail });
}

/** 429, without reading the body. */
export function uploadBusy(reply: FastifyReply, detail: string): Refusal {
  reply.header('connection', 'close');
  return tooBusy(detail);
}
