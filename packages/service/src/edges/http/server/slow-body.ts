import type { IncomingMessage, Server } from 'node:http';
import { announcesBody } from './unread-body.ts';

/**
 * Ends requests whose bodies arrive too slowly: in each period of `periodMs`, the body must end or `leastBytes` must arrive. So a body of
 * many gigabytes may take hours, but a client cannot hold the connection, memory and leases of a request with a few bytes.
 */
export function endSlowBodies(server: Server, periodMs: number, leastBytes: number): void {
  server.on('request', (request: IncomingMessage) => {
    if (!announcesBody(request)) return;
    const { socket } = request;
    let before = socket.bytesRead;
    const timer = setInterval(() => {
      const arrived = socket.bytesRead - before;
      before = socket.bytesRead;
      if (request.complete || arrived < leastBytes) clearInterval(timer);
      if (!request.complete && arrived < leastBytes) server.emit('clientError', new SlowBody(), socket);
    }, periodMs).unref();
    request.once('close', () => clearInterval(timer));
  });
}

class SlowBody extends Error {
  /** The code with which Node reports a request that was not sent in time. */
  readonly code = 'ERR_HTTP_REQUEST_TIMEOUT';
}
