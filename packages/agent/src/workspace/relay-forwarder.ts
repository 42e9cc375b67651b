import { connect, createServer, type Socket } from 'node:net';

export interface RelayForwarder {
  /** `http://127.0.0.1:PORT`, without a trailing slash. */
  url: string;
  close(): void;
}

/** Listens on loopback inside the sandbox and pipes to the relay's Unix socket, for programs that use only TCP, such as git. */
export function startRelayForwarder(relaySocket: string): Promise<RelayForwarder> {
  const open = new Set<Socket>();
  const server = createServer((incoming) => {
    const outgoing = connect(relaySocket);
    for (const [from, to] of [
      [incoming, outgoing],
      [outgoing, incoming],
    ] as const) {
      open.add(from);
      from.pipe(to);
      from.on('error', () => to.destroy());
      from.on('close', () => {
        open.delete(from);
        to.destroy();
      });
    }
  });
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      const port = typeof address === 'object' && address !== null ? address.port : 0;
      server.unref();
      resolve({
        url: `http://127.0.0.1:${port}`,
        close: () => {
          server.close();
          for (const socket of open) socket.destroy();
        },
      });
    });
  });
}
