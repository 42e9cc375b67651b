/**
 * A TCP proxy in front of a service. The proxy can lose answers: when an answer begins, it closes the connections to client and
 * service.
 */
import net from 'node:net';

export interface CuttingProxy {
  /** Origin of the proxy, to use instead of the origin of the service. */
  readonly url: string;
  /** Loses the answers to the next `count` POST requests. */
  loseAnswers(count: number): void;
  /** Returns how many answers were lost. */
  lost(): number;
  /** From now on, forwards new connections to the service at `origin`. */
  leadTo(origin: string): void;
  /** From now on, drops what the clients of the open connections send. Does not affect new connections. */
  dropRequests(): void;
  /** Closes all connections. */
  cut(): void;
  close(): Promise<void>;
}

/** Opens a proxy to the service at `origin`. */
export async function openCuttingProxy(origin: string): Promise<CuttingProxy> {
  let target = new URL(origin);
  let toLose = 0;
  let lost = 0;
  const open = new Set<net.Socket>();
  const dropped = new WeakSet<net.Socket>();
  const server = net.createServer((client) => {
    const upstream = net.connect(Number(target.port), target.hostname);
    let isPost = false;
    for (const [socket, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      open.add(socket);
      socket.on('error', () => undefined);
      socket.on('close', () => {
        open.delete(socket);
        other.destroy();
      });
    }
    client.on('data', (bytes) => {
      if (dropped.has(client)) return;
      const method = /^([A-Z]+) \//.exec(bytes.toString('latin1'))?.[1];
      if (method !== undefined) isPost = method === 'POST';
      upstream.write(bytes);
    });
    upstream.on('data', (bytes) => {
      if (isPost && toLose > 0) {
        toLose -= 1;
        lost += 1;
        client.destroy();
        upstream.destroy();
      } else {
        client.write(bytes);
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const cut = () => {
    for (const socket of open) socket.destroy();
  };
  return {
    url: `http://127.0.0.1:${(server.address() as net.AddressInfo).port}`,
    loseAnswers: (count) => {
      toLose = count;
    },
    lost: () => lost,
    leadTo: (other) => {
      target = new URL(other);
    },
    dropRequests: () => {
      for (const socket of open) dropped.add(socket);
    },
    cut,
    close: async () => {
      cut();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
