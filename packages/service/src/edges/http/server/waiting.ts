import type { FastifyInstance, FastifyRequest } from 'fastify';

/**
 * Returns a function for routes in which callers wait most of the time. It returns the signal of a request, which is aborted when the
 * caller disconnects and when the service stops.
 */
export function waitingSignals(app: FastifyInstance): (request: FastifyRequest) => AbortSignal {
  const closing = new AbortController();
  app.addHook('preClose', async () => closing.abort());
  return (request) => {
    const gone = new AbortController();
    request.raw.once('close', () => gone.abort());
    // A caller that disconnected before sends no `close` event any more.
    if (request.raw.socket.destroyed) gone.abort();
    return AbortSignal.any([gone.signal, closing.signal]);
  };
}
