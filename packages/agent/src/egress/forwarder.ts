import type { Socket } from 'node:net';
import { listenOnLoopback } from '../listen-on-loopback.ts';

/**
 * The hosts that programs of the run can reach. `open`: all hosts, as on the machine; `allow_list`: the hosts of the environment, through
 * the proxy in the variables; `none`: no host.
 */
export type NetworkAccess = 'open' | 'allow_list' | 'none';

/** A loopback port that leads to the worker's proxy. */
export interface EgressForwarder {
  /** Variables that tell programs the address of the proxy. */
  readonly variables: Readonly<Record<string, string>>;
  close(): void;
}

/**
 * The port of the proxy in a sandbox with a separate network. The port is always the same, because programs of a setup write the address
 * into files that later runs get.
 */
const proxyPort = 23_128;

/**
 * Listens on loopback and forwards every byte to the proxy on a Unix socket, because programs know only proxies with a port. The proxy
 * does all checks.
 */
export async function startEgressForwarder(proxySocket: string): Promise<EgressForwarder> {
  const net = process.getBuiltinModule('node:net');
  const open = new Set<Socket>();
  const server = net.createServer({ allowHalfOpen: true, noDelay: true }, (client) => {
    const proxy = net.connect({ path: proxySocket, allowHalfOpen: true });
    for (const [one, other] of [
      [client, proxy],
      [proxy, client],
    ] as const) {
      open.add(one);
      one.on('error', () => one.destroy());
      one.once('close', () => {
        open.delete(one);
        other.destroySoon();
      });
      one.pipe(other);
    }
  });
  const port = await listenOnLoopback(server, proxyPort);
  return {
    variables: proxyVariables(`http://127.0.0.1:${port}`),
    close() {
      server.close();
      for (const socket of open) socket.destroy();
    },
  };
}

/** Programs differ in the spelling that they read. Loopback addresses are reached directly, because the forwarders of models and git listen there. */
function proxyVariables(url: string): Record<string, string> {
  const direct = '127.0.0.1,localhost,::1';
  return {
    ...{ HTTPS_PROXY: url, HTTP_PROXY: url, ALL_PROXY: url, NO_PROXY: direct },
    ...{ https_proxy: url, http_proxy: url, all_proxy: url, no_proxy: direct },
    // Node's own fetch reads the proxy variables only if this variable is set (nodejs.org/api/cli.html).
    NODE_USE_ENV_PROXY: '1',
  };
}
