import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { type Host, readAuthority } from '@runyard/contract/egress/host-name';
import { http } from '@runyard/system/node-http';
import { proxyAuthorization } from '@runyard/system/outgoing/tunnel';
import { bodyFraming, forwardedHeaders, forwardedStatus, hasBody } from '../relay/forwarding.ts';

/**
 * Where a request goes. `written`: host and port as the client wrote them. `target`: the same host and port, parsed for the comparison with
 * the rules; undefined if host or port is invalid.
 */
export interface PlainTarget {
  readonly written: string;
  readonly target: (Host & { readonly port: number }) | undefined;
  readonly path: string;
}

const plainPort = 80;

/**
 * Returns where a request goes. A request to a proxy names the host in its URL (absolute form, RFC 9112 section 3.2.2). A request inside a
 * tunnel has only a path and goes to the target of the tunnel, `tunnel`. Returns undefined if the URL has neither form.
 */
export function plainTarget(
  url: string,
  tunnel: (Host & { readonly port: number }) | undefined,
): PlainTarget | undefined {
  const [, written, rest = ''] = /^http:\/\/([^/?#]*)([^#]*)$/i.exec(url) ?? [];
  if (written !== undefined)
    return { written, target: readAuthority(written, plainPort), path: rest.startsWith('/') ? rest : `/${rest}` };
  if (tunnel === undefined || !url.startsWith('/')) return undefined;
  return { written: tunnel.host, target: tunnel, path: url };
}

/** Returns true if the request has exactly one Host header, and this header names the target. */
export function hostMatches({ headersDistinct }: IncomingMessage, target: Host & { readonly port: number }): boolean {
  const [host, ...more] = headersDistinct.host ?? [];
  const named = more.length === 0 && host !== undefined ? readAuthority(host, plainPort) : undefined;
  return named !== undefined && named.host === target.host && named.port === target.port;
}

/**
 * Sends the request to the server at the other end of `socket`, with the checked host and without the proxy headers of the client. `proxy`: the
 * socket leads to this proxy, which gets the absolute URL.
 */
export function forwardPlain(
  message: IncomingMessage,
  response: ServerResponse,
  { host, port, path }: { readonly host: string; readonly port: number; readonly path: string },
  { socket, proxy }: { readonly socket: Socket; readonly proxy?: URL },
): void {
  const name = host.includes(':') ? `[${host}]` : host;
  const authority = port === plainPort ? name : `${name}:${port}`;
  const request = http.request({
    createConnection: () => socket,
    method: message.method ?? 'GET',
    path: proxy === undefined ? path : `http://${authority}${path}`,
    headers: {
      ...forwardedHeaders(message),
      ...bodyFraming(message),
      ...(proxy === undefined ? {} : proxyAuthorization(proxy)),
      host: authority,
    },
    setHost: false,
  });
  request.on('error', () => refuse(response, 502, 'the server closed the connection without an answer'));
  request.on('response', (reply) => {
    response.writeHead(forwardedStatus(reply), forwardedHeaders(reply));
    response.flushHeaders();
    reply.pipe(response);
    reply.on('error', () => response.destroy());
    reply.on('aborted', () => response.destroy());
  });
  response.once('close', () => socket.destroy());
  message.on('error', () => request.destroy());
  if (hasBody(message)) message.pipe(request);
  else request.end();
}

/**
 * Answers with an error status and closes the connection, because the server would read the unread rest of the request as the next
 * request.
 */
export function refuse(response: ServerResponse, status: number, reason: string): void {
  if (response.headersSent || response.destroyed) {
    response.destroy();
    return;
  }
  response.writeHead(status, { 'content-type': 'text/plain', connection: 'close' }).end(`Runyard: ${reason}\n`);
}
