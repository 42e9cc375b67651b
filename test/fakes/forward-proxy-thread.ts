/** The thread of `forward-proxy.ts`. */
import { createServer, type IncomingMessage, request as sendRequest } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import { parentPort, workerData } from 'node:worker_threads';
import type { ForwardProxyData } from './forward-proxy.ts';

const { authorization, key, cert, ...data } = workerData as ForwardProxyData;
const servers: Record<string, number> = { ...data.servers };
parentPort?.on('message', ([authority, port]: [string, number]) => {
  servers[authority] = port;
});

/** Records the request and returns the port of its server, or the status of a refusal. */
function admit(
  request: IncomingMessage,
  authority: string,
): { readonly port?: number; readonly status: 200 | 407 | 502 } {
  const isKnown = request.headers['proxy-authorization'] === authorization;
  parentPort?.postMessage(`${isKnown ? '' : '407 '}${request.method} ${request.url}`);
  const port = servers[authority];
  if (!isKnown) return { status: 407 };
  return port === undefined ? { status: 502 } : { port, status: 200 };
}

const proxy = createServer((request, response) => {
  const url = URL.parse(request.url ?? '');
  if (url?.protocol !== 'http:') return void response.writeHead(400).end();
  const { port, status } = admit(request, `${url.hostname}:${url.port || 80}`);
  if (port === undefined) return void response.writeHead(status).end('refused by the proxy');
  const { 'proxy-authorization': _, 'proxy-connection': __, ...headers } = request.headers;
  const sent = sendRequest(
    { host: '127.0.0.1', port, method: request.method, path: url.pathname + url.search, headers },
    (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    },
  );
  sent.on('error', () => response.destroy());
  request.pipe(sent);
});

proxy.on('connect', (request, client: Socket, head: Buffer) => {
  client.on('error', () => client.destroy());
  const authority = request.url ?? '';
  const { port, status } = admit(request, authority);
  if (port === undefined) return void client.end(`HTTP/1.1 ${status} Refused\r\ncontent-length: 0\r\n\r\n`);
  client.write('HTTP/1.1 200 Connection established\r\n\r\n');
  if (head.length > 0) client.unshift(head);
  const plain = authority.endsWith(':443') ? new TLSSocket(client, { isServer: true, key, cert }) : client;
  const onward = connect(port, '127.0.0.1');
  onward.on('error', () => plain.destroy()).on('close', () => plain.destroy());
  plain.on('error', () => onward.destroy()).on('close', () => onward.destroy());
  plain.pipe(onward).pipe(plain);
});

proxy.listen(0, '127.0.0.1', () => parentPort?.postMessage((proxy.address() as AddressInfo).port));
