import { createServer, type Server } from 'node:net';

/**
 * Listens on an abstract Unix socket: only one process can hold the name, and the kernel frees it when that process dies. Returns
 * `undefined` if it is taken.
 */
export async function takeName(name: string): Promise<Server | undefined> {
  const server = createServer((socket) => socket.destroy());
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) =>
      error.code === 'EADDRINUSE' ? resolve(undefined) : reject(error),
    );
    server.listen({ path: `\0${name}` }, () => {
      server.unref();
      resolve(server);
    });
  });
}
