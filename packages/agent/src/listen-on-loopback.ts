import type { Server } from 'node:net';

/**
 * Listens on a port of 127.0.0.1 and returns the port. Uses `preferred` if this port is free, and otherwise any free port. The server
 * does not keep the process alive. Rejects if no port is free.
 */
export async function listenOnLoopback(server: Server, preferred = 0): Promise<number> {
  const listen = (port: number) =>
    new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(port, '127.0.0.1', () => {
        server.off('error', reject);
        resolve();
      });
    });
  await listen(preferred).catch((error: NodeJS.ErrnoException) => {
    if (preferred === 0 || error.code !== 'EADDRINUSE') throw error;
    return listen(0);
  });
  server.unref();
  const address = server.address();
  return typeof address === 'object' && address !== null ? address.port : 0;
}
