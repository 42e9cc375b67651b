import type { ServerResponse } from 'node:http';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { BodyBudget } from '../../../platform/bodies/body-budget.ts';
import { holdBody } from '../../../platform/bodies/request-bodies.ts';
import { tooBusy } from '../../../platform/bodies/too-busy.ts';
import { refuse } from '../../../platform/serving/refusal.ts';
import type { Authorizer } from './authorize.ts';
import { parseJsonBody, refuseCoding } from './json-body.ts';

/** Makes JSON the only type of body that the app accepts. A body holds room in `bodies` until its request is answered. */
export function parseJsonBodies(
  app: FastifyInstance,
  { authorizer, bodies }: { readonly authorizer: Authorizer; readonly bodies: BodyBudget },
): void {
  // A property of the request: a WeakMap would cost each garbage collection more.
  app.decorateRequest('response', null);
  app.addHook('onRequest', (request, reply, done) => {
    request.setDecorator('response', reply.raw);
    done();
  });

  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/json', async (request: FastifyRequest) => {
    refuseCoding(request.headers['content-encoding']);
    const { principal, session } = authorizer.callerOf(request);
    const { bodyLimit, config } = request.routeOptions;
    const keylessBytes = principal ? undefined : config.maxKeylessBytes;
    const received = await holdBody(bodies, {
      request: request.raw,
      response: request.getDecorator<ServerResponse>('response'),
      owner: { teamId: session?.teamId ?? principal?.teamId, executionId: session?.executionId },
      maxBytes: keylessBytes ?? bodyLimit,
    });
    switch (received.kind) {
      case 'body':
        return await parseJsonBody(received.bytes, config.maxBodyValues);
      case 'busy':
        throw tooBusy('Too many requests with a body wait already, of this caller or of all.');
      case 'too_large':
        throw refuse('invalid_request', {
          status: 413,
          detail: keylessBytes
            ? `The body is too large: without a key it has at most ${keylessBytes} bytes. Send a key, or less.`
            : 'The body is too large.',
        });
      case 'too_slow':
        throw refuse('invalid_request', { status: 408, detail: 'The body came too slowly.' });
      case 'cut':
        throw refuse('invalid_request', { detail: 'The number of bytes in the body differs from its Content-Length.' });
    }
  });
}
