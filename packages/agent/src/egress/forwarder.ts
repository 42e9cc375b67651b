import type { Socket } from 'node:net';
import { maxEgressConnections } from '@runyard/contract/limits';
import { listenOnLoopback } from '../listen-on-loopback.ts';

/**
 * The hosts that programs of the run can reach. `open`: all hosts that the machine reaches. `allow_list`: the hosts of the environment's
 * allow-list, through the proxy. `none`: no host.
 */
export type NetworkAccess = 'open' | 'allow_list' | 'none';

/** A loopback port that leads to the worker's proxy. */
export interface EgressForwarder {
  /** Environment variables with the address of the proxy for programs. */
  readonly variables: Readonly<Record<string, string>>;
  close(): void;
}

/**
 * The port of the proxy in a sandbox with a separate network. The port never changes, because setup programs may write the address into
 * files that later runs reuse.
 */
const proxyPort = 23_128;

/**
 * Listens on a port of loopback, because programs can only use a proxy that has a port. Forwards every byte to the worker's proxy on a
 * Unix socket, and leaves all checks to that proxy.
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
  // The proxy accepts no more connections either.
  server.maxConnections = maxEgressConnections;
  const port = await listenOnLoopback(server, proxyPort);
  return {
    variables: proxyVariables(port),
    close() {
      server.close();
      for (const socket of open) socket.destroy();
    },
  };
}

/** Hosts that are the sandbox itself. The forwarders for models and git listen there, and programs of the run start servers there. */
const directHosts = ['localhost', '.localhost', 'sandbox', '127.0.0.1', '127.0.0.0/8', '0.0.0.0', '::1', '[::1]'];

/** The options with which a Java runtime uses the proxy. It reads no proxy variable (docs.oracle.com, "Networking Properties"). */
const javaOptions = (port: number): string =>
  [
    ...['http', 'https'].flatMap((scheme) => [`-D${scheme}.proxyHost=127.0.0.1`, `-D${scheme}.proxyPort=${port}`]),
    '-Dhttp.nonProxyHosts=localhost|*.localhost|sandbox|127.*|0.0.0.0|[::1]',
  ].join(' ');

/** Sets each variable in upper and lower case, because programs read different spellings. */
function proxyVariables(port: number): Record<string, string> {
  const url = `http://127.0.0.1:${port}`;
  const direct = directHosts.join(',');
  return {
    JAVA_TOOL_OPTIONS: javaOptions(port),
    ...{ HTTPS_PROXY: url, HTTP_PROXY: url, ALL_PROXY: url, NO_PROXY: direct },
    ...{ https_proxy: url, http_proxy: url, all_proxy: url, no_proxy: direct },
    // Node's own fetch reads the proxy variables only if this variable is set (nodejs.org/api/cli.html).
    NODE_USE_ENV_PROXY: '1',
  };
}
