import type { Agent } from 'node:http';
import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { hostOf } from '../address-rules.ts';
import { http } from '../node-http.ts';
import { agentFor, proxyConnectMs, proxyOf } from './outgoing.ts';
import { isSecure, portOf } from './proxy-settings.ts';

/** Returns the headers by which the proxy knows its user. */
export function proxyAuthorization({ username, password }: URL): Readonly<Record<string, string>> {
  if (username === '' && password === '') return {};
  const credentials = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  return { 'proxy-authorization': `Basic ${Buffer.from(credentials).toString('base64')}` };
}

/** Opens a connection to the proxy itself. Rejects with an error of the socket. */
export function connectToProxy(proxy: URL, signal: AbortSignal): Promise<Socket> {
  const secure = proxy.protocol === 'https:';
  const options = { host: hostOf(proxy), port: Number(proxy.port || (secure ? 443 : 80)), allowHalfOpen: true };
  const socket = secure
    ? process.getBuiltinModule('node:tls').connect({ ...options, servername: options.host })
    : process.getBuiltinModule('node:net').connect({ ...options, noDelay: true });
  return new Promise((resolve, reject) => {
    const ending = AbortSignal.any([signal, AbortSignal.timeout(proxyConnectMs)]);
    const giveUp = (): void => void socket.destroy(new Error('the proxy does not accept connections'));
    ending.addEventListener('abort', giveUp, { once: true });
    if (ending.aborted) giveUp();
    socket.once(secure ? 'secureConnect' : 'connect', () => {
      ending.removeEventListener('abort', giveUp);
      resolve(socket);
    });
    // Keep this listener, because an error without a listener would end the process.
    socket.on('error', reject);
  });
}

/** Thrown if the proxy does not open the tunnel. `status`: the HTTP status of the proxy's answer. */
export class TunnelRefused extends Error {
  readonly status: number;
  constructor(status: number) {
    super(`the proxy answers ${status}`);
    this.status = status;
  }
}

/** Opens a tunnel to `authority` (`host:port`) through the proxy. Rejects with `TunnelRefused`, or with an error of the socket. */
export async function openTunnel(proxy: URL, authority: string, signal: AbortSignal): Promise<Socket> {
  const socket = await connectToProxy(proxy, signal);
  const ending = AbortSignal.any([signal, AbortSignal.timeout(proxyConnectMs)]);
  const giveUp = (): void => void socket.destroy(new Error('the proxy opens no tunnel'));
  ending.addEventListener('abort', giveUp, { once: true });
  try {
    return await new Promise((resolve, reject) => {
      const headers = { host: authority, ...proxyAuthorization(proxy) };
      const options = { method: 'CONNECT', path: authority, headers, setHost: false };
      const request = http.request({ ...options, createConnection: () => socket });
      request.once('connect', ({ statusCode = 502 }, _socket, head) => {
        if (statusCode < 200 || statusCode > 299) return reject(new TunnelRefused(statusCode));
        if (head.length > 0) socket.unshift(head);
        resolve(socket);
      });
      request.on('error', reject);
      request.end();
    });
  } catch (error) {
    socket.destroy();
    throw error;
  } finally {
    // From now on, the tunnel belongs to the caller.
    ending.removeEventListener('abort', giveUp);
  }
}

/**
 * Returns the option `agent` of a WebSocket. A proxy forwards no upgrade of a plain HTTP request, so a WebSocket always has a tunnel (RFC 6455,
 * 4.1).
 */
export function webSocketAgent(url: URL): { readonly agent?: Agent } {
  const proxy = proxyOf(url);
  if (proxy === undefined) return {};
  if (isSecure(url)) return { agent: agentFor(url) || new http.Agent() };
  const agent = new http.Agent();
  agent.createConnection = (_options, done) => {
    const authority = `${url.hostname}:${portOf(url)}`;
    openTunnel(proxy, authority, new AbortController().signal).then(
      (socket) => done?.(null, socket),
      (error: Error) => done?.(error, new Duplex()),
    );
    return undefined;
  };
  return { agent };
}
