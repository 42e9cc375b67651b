import { createServer, type Server } from 'node:net';

/** Listens on an abstract Unix socket: a name that one process can have, which the kernel frees when that process dies. `undefined`: taken. */
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
