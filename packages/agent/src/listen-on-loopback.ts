import type { Server } from 'node:net';

/** Listens on a free port of 127.0.0.1 and returns the port. The server does not keep the process alive. Rejects if no port is free. */
export async function listenOnLoopback(server: Server): Promise<number> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', resolve);
  });
  server.unref();
  const address = server.address();
  return typeof address === 'object' && address !== null ? address.port : 0;
}
