/** A proxy to a PostgreSQL server. A test can cut the proxy: then open connections end, and new connections are closed at once. */
import net from 'node:net';

export interface CuttableLine {
  /** The URL that the test gave, with the address of this proxy instead of the server's address. */
  readonly url: string;
  cut(): void;
  mend(): void;
  close(): Promise<void>;
}

/** Opens a proxy on a loopback port. `target` is the `postgres://` URL of the server. */
export async function openCuttableLine(target: string): Promise<CuttableLine> {
  const url = new URL(target);
  const socketFolder = url.searchParams.get('host');
  const port = Number(url.port || 5432);
  const there = socketFolder?.startsWith('/')
    ? { path: `${socketFolder}/.s.PGSQL.${port}` }
    : { host: socketFolder ?? url.hostname, port };
  const open = new Set<net.Socket>();
  let isCut = false;
  const server = net.createServer((client) => {
    if (isCut) return client.destroy();
    const upstream = net.connect(there);
    for (const [socket, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      open.add(socket);
      socket.on('error', () => {});
      socket.on('close', () => {
        open.delete(socket);
        other.destroy();
      });
    }
    client.pipe(upstream).pipe(client);
    return undefined;
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url.searchParams.delete('host');
  url.hostname = '127.0.0.1';
  url.port = String((server.address() as net.AddressInfo).port);
  return {
    url: url.href,
    cut() {
      isCut = true;
      for (const socket of open) socket.destroy();
    },
    mend() {
      isCut = false;
    },
    close: () => {
      for (const socket of open) socket.destroy();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}
