import type { FastifyReply } from 'fastify';

/** Aborted when the answer was sent, or its client is gone. */
export function signalOfReply(reply: FastifyReply): AbortSignal {
  const over = new AbortController();
  reply.raw.once('close', () => over.abort());
  // A client that was gone before has no `close` any more.
  if (reply.raw.destroyed) over.abort();
  return over.signal;
}
