import { createServer, type Server } from 'node:net';

/**
 * Takes a name for this process by listening on an abstract Unix socket. Only one process at a time can have the name, and the kernel
 * releases the name when this process ends. Returns `undefined` if another process has the name.
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
