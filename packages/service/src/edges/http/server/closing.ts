import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyInstance, FastifyRequest } from 'fastify';

/** Longest time for closing connections without a complete request, milliseconds. */
const silentMs = 500;
/** Longest time for the requests that are being answered, milliseconds. */
const drainMs = 10_000;
const lookEveryMs = 25;

/**
 * Lets `close()` end as soon as the requests in flight are answered, and after a limit in any case. Node itself closes the connections that
 * are idle at the call and waits for all others. A client with a kept-alive connection delays the close until the connection times out,
 * after 72 s by fastify's default. A client that connected and sent nothing delays the close forever, because Node stops checking its
 * timeouts during the close. `forceCloseConnections` would end the requests in flight.
 */
export function closeConnectionsWhileClosing(app: FastifyInstance): void {
  const { server } = app;
  const sockets = new Set<Socket>();
  const answering = new Map<Socket, number>();
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  server.on('request', ({ socket }: IncomingMessage, response: ServerResponse) => {
    answering.set(socket, (answering.get(socket) ?? 0) + 1);
    response.once('close', () => {
      const left = (answering.get(socket) ?? 1) - 1;
      if (left > 0) answering.set(socket, left);
      else answering.delete(socket);
    });
  });

  let isClosing = false;
  app.addHook('preClose', async () => {
    isClosing = true;
    const startedAt = performance.now();
    const timer = setInterval(() => {
      const elapsed = performance.now() - startedAt;
      server.closeIdleConnections();
      for (const socket of sockets) {
        if (elapsed > (answering.has(socket) ? drainMs : silentMs)) socket.destroy();
      }
    }, lookEveryMs);
    server.once('close', () => clearInterval(timer));
  });
  app.addHook('onSend', async (_request, reply, payload) => {
    if (isClosing) reply.header('connection', 'close');
    return payload;
  });
}

/**
 * Returns a function for routes whose requests wait most of the time. The function returns a signal for each request. The signal is aborted
 * when the caller disconnects and when the service stops.
 */
export function waitingSignals(app: FastifyInstance): (request: FastifyRequest) => AbortSignal {
  const closing = new AbortController();
  app.addHook('preClose', async () => closing.abort());
  return (request) => {
    const gone = new AbortController();
    request.raw.once('close', () => gone.abort());
    // If the caller has already disconnected, `close` is not emitted again.
    if (request.raw.socket.destroyed) gone.abort();
    return AbortSignal.any([gone.signal, closing.signal]);
  };
}
