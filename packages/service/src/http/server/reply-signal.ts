import type { FastifyReply } from 'fastify';

/** Returns a signal that is aborted when the answer was sent or the client has disconnected. */
export function signalOfReply(reply: FastifyReply): AbortSignal {
  const over = new AbortController();
  reply.raw.once('close', () => over.abort());
  // A client that disconnected before sends no `close` event any more.
  if (reply.raw.destroyed) over.abort();
  return over.signal;
}
