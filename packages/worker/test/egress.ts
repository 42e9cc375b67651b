/** Starts the proxy of a sandbox with host names, addresses and servers that a test defines. */
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import type { DeniedConnections } from '@runyard/contract/egress/denied';
import type { OperatorRules } from '@runyard/contract/settings/egress';
import { type AskedHosts, askAboutHosts } from '../src/egress/asked-hosts.ts';
import { deniedLog } from '../src/egress/denied-log.ts';
import { egressAddresses, egressPolicy } from '../src/egress/policy.ts';
import { openProxy, type ProxyLimits } from '../src/egress/proxy.ts';

/** An address of the internet. No packet is sent to this address, because the tests connect the proxy to their own server. */
export const publicAddress = '93.184.216.34';

export interface TestProxyOptions {
  readonly hosts: readonly string[];
  readonly operator?: OperatorRules;
  /** Private networks that the operator allows. */
  readonly networks?: readonly string[];
  readonly limits?: Partial<ProxyLimits>;
  readonly asked?: AskedHosts;
}

export interface TestProxy extends AsyncDisposable {
  /**
   * The keys are host names, the values are their addresses. If a value is a list of lists, each look-up returns the next list. The host
   * names end with a dot, because the proxy looks up names in this form.
   */
  readonly names: Record<string, readonly string[] | (readonly string[])[]>;
  /** Addresses that the proxy connected to, as `address:port`. */
  readonly dialled: string[];
  /** `host port reason` of each denied connection that was reported. */
  readonly denied: string[];
  readonly reports: DeniedConnections[];
  /** Opens a connection to the proxy. */
  open(): Promise<Socket>;
  /** Sends text and returns everything that is received. */
  say(text: string): Promise<string>;
  /** Sends a CONNECT request. Returns the first line of the answer, and the socket of the tunnel. */
  connect(authority: string): Promise<{ readonly status: string; readonly socket: Socket }>;
  close(): Promise<void>;
}

/** Starts a proxy that connects every request to `server`. */
export async function startTestProxy(server: Server, options: TestProxyOptions): Promise<TestProxy> {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'runyard-proxy-'));
  const socketPath = path.join(folder, 'egress.sock');
  const names: TestProxy['names'] = {};
  const dialled: string[] = [];
  const reports: DeniedConnections[] = [];
  const proxy = await openProxy(socketPath, undefined, {
    policy: egressPolicy(options.hosts, options.operator ?? 'any'),
    denied: deniedLog((denied) => reports.push(denied)),
    addresses: egressAddresses(options.networks ?? []),
    resolve: async (host) => {
      const known = names[host] ?? [];
      const addresses = typeof known[0] === 'object' ? (known as string[][]).shift() : known;
      if (addresses === undefined || addresses.length === 0)
        throw Object.assign(new Error(`${host} does not exist`), { code: 'ENOTFOUND' });
      return (addresses as string[]).map((address) => ({ address, family: address.includes(':') ? 6 : 4 }));
    },
    connect: ({ host, port }) => {
      dialled.push(`${host}:${port}`);
      return connect({ port: (server.address() as AddressInfo).port, host: '127.0.0.1', allowHalfOpen: true });
    },
    ...(options.asked ? { ask: askAboutHosts(options.asked) } : {}),
    limits: { maxBytes: 1e9, idleMs: 20_000, longestMs: 20_000, countMs: 10, headersMs: 5_000, ...options.limits },
  });
  const open = async (): Promise<Socket> => {
    const socket = connect({ path: socketPath, allowHalfOpen: true });
    socket.on('error', () => {});
    await once(socket, 'connect');
    return socket;
  };
  const say: TestProxy['say'] = async (text) => {
    const socket = await open();
    socket.write(text);
    return await textOf(socket);
  };
  return {
    names,
    dialled,
    reports,
    get denied() {
      return reports.flatMap(({ connections }) =>
        connections.map(({ host, port, reason }) => `${host} ${port} ${reason}`),
      );
    },
    open,
    say,
    async connect(authority) {
      const socket = await open();
      socket.write(`CONNECT ${authority} HTTP/1.1\r\nHost: ${authority}\r\n\r\n`);
      const [first] = (await Promise.race([once(socket, 'data'), once(socket, 'end'), once(socket, 'close')])) as [
        Buffer | boolean,
      ];
      return { status: first instanceof Buffer ? (first.toString().split('\r\n')[0] ?? '') : 'closed', socket };
    },
    close: proxy.close,
    async [Symbol.asyncDispose]() {
      await proxy.close();
      await rm(folder, { recursive: true });
    },
  };
}

/** Returns everything that is received until the connection closes. */
export async function textOf(socket: Socket): Promise<string> {
  let text = '';
  socket.on('data', (chunk: Buffer) => {
    text += chunk.toString('latin1');
  });
  if (!socket.closed) await Promise.race([once(socket, 'end'), once(socket, 'close')]);
  socket.destroy();
  return text;
}

/** A server that records what it receives and sends it back. */
export async function startEchoServer(): Promise<{
  readonly server: Server;
  readonly got: () => string;
  readonly forget: () => void;
}> {
  let got = '';
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.on('data', (chunk) => {
      got += chunk.toString('latin1');
      socket.write(chunk);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    server,
    got: () => got,
    forget: () => {
      got = '';
    },
  };
}
