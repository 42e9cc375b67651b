import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { type DeniedReason, deniedReasons } from '@runyard/contract/egress/denied-reasons';
import { type Host, readAuthority } from '@runyard/contract/egress/host-name';
import { maxEgressConnections } from '@runyard/contract/limits';
import { http } from '@runyard/system/node-http';
import { listenOnSocket, type Relay } from '../relay/socket-server.ts';
import type { AskAboutHost } from './asked-hosts.ts';
import type { DeniedLog } from './denied-log.ts';
import { type Dialling, type DialOutcome, dial } from './dial.ts';
import { forwardPlain, hostMatches, plainTarget, refuse } from './plain-http.ts';
import type { EgressPolicy } from './policy.ts';
import { type SocketLimits, sandboxSockets } from './sockets.ts';
import { openTunnel } from './tunnel.ts';

export interface ProxyLimits extends SocketLimits {
  /** Milliseconds that a client has to send the headers of a request, or the first message of TLS. */
  readonly headersMs: number;
}

export interface ProxyOptions extends Dialling {
  readonly policy: EgressPolicy;
  readonly denied: DeniedLog;
  readonly limits: ProxyLimits;
  /** Asks the service about each connection to an allowed host. Absent: no approval rule names a host. */
  readonly ask?: AskAboutHost;
}

type Target = Host & { readonly port: number };

const maxHeaderBytes = 16 * 1024;
const plainPort = 80;
const tlsPort = 443;

/**
 * Opens the proxy of one sandbox on a Unix socket. The proxy accepts requests with an absolute URL (`GET http://host/`) and CONNECT
 * requests, which open tunnels. A tunnel to port 443 passes only TLS to the named host. In a tunnel to port 80, the proxy parses the
 * HTTP itself and checks each request.
 */
export async function openProxy(socketPath: string, uid: number | undefined, options: ProxyOptions): Promise<Relay> {
  const { policy, denied, limits } = options;
  const ended = new AbortController();
  const sockets = sandboxSockets(limits, () => denied.add('', 0, 'too_many_bytes'));
  const server = http.createServer({
    maxHeaderSize: maxHeaderBytes,
    headersTimeout: limits.headersMs,
    requestTimeout: 0,
    connectionsCheckingInterval: Math.min(limits.headersMs, 5_000),
    keepAliveTimeout: 30_000,
    noDelay: true,
  });
  /** Targets of the tunnels to port 80, by the client's socket. `server` reads the requests in these tunnels. */
  const tunnels = new WeakMap<Socket, Target>();

  /** Connects to the target if the rules allow the target. Otherwise records why the connection is denied. */
  async function reach(
    target: Target | undefined,
    written: string,
    form: 'tunnel' | 'request',
    gone: AbortSignal,
  ): Promise<DialOutcome> {
    const reason = target === undefined ? 'invalid_host' : policy.refusal(target, target.port);
    if (target === undefined || reason !== undefined) return deny(target, written, reason ?? 'invalid_host');
    const signal = AbortSignal.any([ended.signal, gone]);
    const notApproved = await options.ask?.(target, target.port, signal);
    if (notApproved !== undefined) return deny(target, written, notApproved);
    const outcome = await dial(target, target.port, form, options, signal);
    return outcome.kind === 'denied' ? deny(target, written, outcome.reason) : outcome;
  }

  function deny(target: Target | undefined, written: string, reason: DeniedReason): DialOutcome {
    // Records the host exactly as the client wrote it, so that the service can find and redact secrets in this text.
    denied.add(target === undefined ? written : written.replace(/:\d+$/, ''), target?.port ?? 0, reason);
    return { kind: 'denied', reason };
  }

  async function onRequest(message: IncomingMessage, response: ServerResponse): Promise<void> {
    const plain = plainTarget(message.url ?? '', tunnels.get(message.socket));
    if (plain === undefined)
      return refuse(response, 400, 'this is a proxy: ask it for http://host/path, or with CONNECT');
    const { target, written, path } = plain;
    const fault =
      target && (target.port === tlsPort ? 'not_tls' : hostMatches(message, target) ? undefined : 'host_mismatch');
    const disconnect = goneWith(response);
    const outcome =
      fault === undefined ? await reach(target, written, 'request', disconnect) : deny(target, written, fault);
    if (outcome.kind === 'denied') return refuse(response, 403, deniedReasons[outcome.reason]);
    if (outcome.kind === 'failed') return refuse(response, 502, outcome.message);
    if (target === undefined || disconnect.aborted) return void outcome.socket.destroy();
    forwardPlain(message, response, { host: target.host, port: target.port, path }, outcome);
  }

  async function onConnect(message: IncomingMessage, client: Socket, head: Buffer): Promise<void> {
    const written = message.url ?? '';
    const target = readAuthority(written);
    if (tunnels.has(client)) return void client.destroy();
    client.on('error', () => client.destroy());
    if (target?.port === plainPort) {
      const reason = policy.refusal(target, plainPort);
      if (reason !== undefined) return refuseTunnel(client, 403, deny(target, written, reason));
      client.write(established);
      if (head.length > 0) client.unshift(head);
      tunnels.set(client, target);
      server.emit('connection', client);
      return;
    }
    const disconnect = goneWith(client);
    const outcome = await reach(target, written, 'tunnel', disconnect);
    if (outcome.kind !== 'connected') return refuseTunnel(client, outcome.kind === 'denied' ? 403 : 502, outcome);
    if (target === undefined || disconnect.aborted) return void outcome.socket.destroy();
    client.write(established);
    openTunnel(client, outcome.socket, head, {
      target,
      needsTls: target.port === tlsPort,
      helloMs: limits.headersMs,
      onDenied: (reason) => void deny(target, written, reason),
    });
  }

  server.on('request', (message, response) => void onRequest(message, response).catch(() => response.destroy()));
  server.on('clientError', (_error, socket) => socket.destroy());
  server.maxConnections = maxEgressConnections;
  server.on('drop', () => denied.add('', 0, 'too_many_connections'));
  server.on('connection', (socket) => {
    if (!tunnels.has(socket) && !sockets.admit(socket)) denied.add('', 0, 'too_many_bytes');
  });
  server.on('connect', (message, socket, head) => {
    onConnect(message, socket as Socket, head).catch(() => socket.destroy());
  });
  const opened = await listenOnSocket(server, socketPath, uid);
  server.unref();
  return {
    async close() {
      ended.abort();
      sockets.close();
      await opened.close();
    },
  };
}

const established = 'HTTP/1.1 200 Connection established\r\n\r\n';

function refuseTunnel(client: Socket, status: 403 | 502, outcome: DialOutcome): void {
  const text =
    outcome.kind === 'denied' ? deniedReasons[outcome.reason] : outcome.kind === 'failed' ? outcome.message : '';
  const body = `Runyard: ${text}\n`;
  const title = http.STATUS_CODES[status];
  client.end(
    `HTTP/1.1 ${status} ${title}\r\ncontent-type: text/plain\r\ncontent-length: ${body.length}\r\nconnection: close\r\n\r\n${body}`,
    () => client.destroy(),
  );
}

/** Returns a signal that aborts when the stream closes. */
function goneWith(stream: Socket | ServerResponse): AbortSignal {
  const disconnect = new AbortController();
  stream.once('close', () => disconnect.abort());
  return disconnect.signal;
}
