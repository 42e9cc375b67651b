import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import type { FastifyInstance } from 'fastify';

/** Sockets that are about to be closed; their clients get no further answer. */
const ending = new WeakSet<Socket>();

/**
 * Closes the connection of a request that is answered before its body has arrived, such as a request without a valid key. Node would read
 * the rest of the body for as long as a request may take. With `Connection: close`, Node would close the socket at once. If a part of the
 * body is still unread, TCP resets the connection and the client may lose the answer (RFC 9112, 9.6). So this function closes the service's
 * side after the answer. It discards further bytes until the body or the connection ends, or `drainMs` have passed.
 */
export function endConnectionsOfUnreadBodies(app: FastifyInstance, drainMs: number): void {
  app.addHook('onRequest', async (request, reply) => {
    if (!ending.has(request.raw.socket)) return;
    // This request came after the unread body. The client gets no answer, so the request must have no effect.
    reply.hijack();
    request.raw.socket.destroy();
  });
  app.addHook('onSend', async (request, reply, payload) => {
    const isUnread = () => announcesBody(request) && !request.raw.complete;
    // If a body arrives in one piece with its headers, Node reads the body in this turn of the event loop.
    if (isUnread()) await setImmediate();
    if (isUnread()) {
      reply.header('connection', 'close');
      endAfterAnswer(request.raw, drainMs);
    }
    return payload;
  });
}

/** Returns whether a body follows the headers of the request. */
export const announcesBody = ({ headers }: Pick<IncomingMessage, 'headers'>): boolean =>
  headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;

function endAfterAnswer(request: IncomingMessage, drainMs: number): void {
  const { socket } = request;
  if (ending.has(socket)) return;
  ending.add(socket);
  // Node calls `destroySoon` when the answer to a request with `Connection: close` is written.
  socket.destroySoon = () => {
    socket.end();
    const timer = setTimeout(() => socket.destroy(), drainMs);
    socket.once('close', () => clearTimeout(timer));
    request.once('end', () => socket.destroy());
    request.once('error', () => socket.destroy());
    request.resume();
  };
}
