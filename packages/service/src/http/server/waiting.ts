import type { FastifyInstance, FastifyRequest } from 'fastify';

/**
 * For routes in which callers wait for most of the time: gives the signal of a request, which is aborted when its caller is gone,
 * and when the service stops, which does not wait for them.
 */
export function waitingSignals(app: FastifyInstance): (request: FastifyRequest) => AbortSignal {
  const closing = new AbortController();
  app.addHook('preClose', async () => closing.abort());
  return (request) => {
    const gone = new AbortController();
    request.raw.once('close', () => gone.abort());
    return AbortSignal.any([gone.signal, closing.signal]);
  };
}
