import { once } from 'node:events';
import http, { type IncomingMessage, type ServerResponse } from 'node:http';
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest';
import { closeAtEnd } from '../../../../test/support/close-at-end.ts';
import { publicAddress, startTestProxy, type TestProxy, textOf } from '../../test/egress.ts';

let handle: (request: IncomingMessage, response: ServerResponse) => void;
let seen: string[];
let proxy: TestProxy;
const server = closeAtEnd(
  http.createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request) body += chunk;
    seen.push(`${request.method} ${request.headers.host} ${request.url} ${body}`.trim());
    handle(request, response);
  }),
);
server.listen(0, '127.0.0.1');
await once(server, 'listening');
beforeEach(async () => {
  seen = [];
  handle = (_request, response) => void response.end('ok');
  proxy = await startTestProxy(server, { hosts: ['example.com', 'example.com:8080', '203.0.113.7'] });
  proxy.names['example.com.'] = [publicAddress];
});
afterEach(() => proxy[Symbol.asyncDispose]());
afterAll(() => {
  server.closeAllConnections();
});

const get = (url: string, host: string, more = ''): string =>
  `GET ${url} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n${more}\r\n`;

describe('a request with an absolute URL', () => {
  test.each([
    ['http://example.com/a?b=c', 'example.com', 'GET example.com /a?b=c', '80'],
    ['http://EXAMPLE.com:80/a', 'example.com.', 'GET example.com /a', '80'],
    ['http://example.com?b', 'example.com:80', 'GET example.com /?b', '80'],
    ['http://example.com:8080/a', 'example.com:8080', 'GET example.com:8080 /a', '8080'],
  ])('to the allowed host of %s reaches this host', async (url, host, request, port) => {
    expect(await proxy.say(get(url, host))).toContain('200 OK');
    expect(seen).toEqual([request]);
    expect(proxy.dialled).toEqual([`${publicAddress}:${port}`]);
  });

  test('is forwarded with its body, but without the headers for proxies', async () => {
    handle = (request, response) => void response.end(JSON.stringify(request.headers));
    const answer = await proxy.say(
      'POST http://example.com/ HTTP/1.1\r\nHost: example.com\r\nProxy-Authorization: Basic x\r\nX-Forwarded-For: 1.1.1.1\r\nConnection: close\r\nX-Kept: yes\r\nContent-Length: 5\r\n\r\nhello',
    );
    expect(seen).toEqual(['POST example.com / hello']);
    expect(answer).toContain('"x-kept":"yes"');
    expect(answer).not.toMatch(/proxy-authorization|x-forwarded-for/);
  });

  test.each(['000', '001', '099', '101'])(
    'is answered with 502 when the server sends the status %s',
    async (status) => {
      const odd = `HTTP/1.1 ${status} Odd\r\nContent-Length: 2\r\n\r\nok`;
      handle = (_request, response) => void response.socket?.end(odd);
      expect(await proxy.say(get('http://example.com/', 'example.com'))).toMatch(/^HTTP\/1\.1 502 /);
    },
  );

  test.each([
    ['http://evil.example/', 'evil.example', 'evil.example 80 host_not_allowed'],
    ['http://example.com:81/', 'example.com:81', 'example.com 81 host_not_allowed'],
    ['http://example.com/', 'evil.example', 'example.com 80 host_mismatch'],
    ['http://example.com/', 'example.com:8080', 'example.com 80 host_mismatch'],
    ['http://example.com/', 'example.com\r\nHost: evil.example', 'example.com 80 host_mismatch'],
    ['http://example.com:443/', 'example.com:443', 'example.com 443 not_tls'],
    ['http://2130706433/', '2130706433', '2130706433 0 invalid_host'],
    ['http://user@example.com/', 'example.com', 'user@example.com 0 invalid_host'],
    ['http://203.0.113.7/', '203.0.113.7', '203.0.113.7 80 private_address'],
  ])('to %s with the Host %j is denied', async (url, host, denied) => {
    expect(await proxy.say(get(url, host))).toMatch(/^HTTP\/1\.1 403 /);
    expect(proxy.denied).toEqual([denied]);
    expect(proxy.dialled).toEqual([]);
    expect(seen).toEqual([]);
  });

  test('reaches no server if the body hides a second request', async () => {
    const inner = 'GET http://evil.example/ HTTP/1.1\r\nHost: evil.example\r\n\r\n';
    const both = `POST http://example.com/ HTTP/1.1\r\nHost: example.com\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${inner}`;
    await proxy.say(both);
    expect(seen).toEqual([]);
  });
});

test('the client gets a redirect as the answer, and the proxy also checks the next request', async () => {
  handle = (_request, response) => void response.writeHead(302, { location: 'http://169.254.169.254/latest' }).end();
  expect(await proxy.say(get('http://example.com/', 'example.com'))).toContain(
    'location: http://169.254.169.254/latest',
  );
  expect(await proxy.say(get('http://169.254.169.254/latest', '169.254.169.254'))).toContain('403 Forbidden');
  expect(seen).toHaveLength(1);
  expect(proxy.denied).toEqual(['169.254.169.254 80 host_not_allowed']);
});

describe('a tunnel to port 80', () => {
  test('passes requests on after a check of each Host header', async () => {
    const { status, socket } = await proxy.connect('example.com:80');
    expect(status).toBe('HTTP/1.1 200 Connection established');
    socket.write('GET /one HTTP/1.1\r\nHost: example.com\r\n\r\n');
    expect(String((await once(socket, 'data'))[0])).toContain('200 OK');
    socket.write('GET /two HTTP/1.1\r\nHost: evil.example\r\n\r\n');
    expect(await textOf(socket)).toContain('403 Forbidden');
    expect(seen).toEqual(['GET example.com /one']);
    expect(proxy.denied).toEqual(['example.com 80 host_mismatch']);
  });

  test('closes if the client sends another protocol than HTTP', async () => {
    const { socket } = await proxy.connect('example.com:80');
    socket.write('SSH-2.0-OpenSSH\r\n');
    await textOf(socket);
    expect(proxy.dialled).toEqual([]);
  });

  test('refuses a second tunnel inside it', async () => {
    const { socket } = await proxy.connect('example.com:80');
    socket.write('CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example\r\n\r\n');
    expect(await textOf(socket)).not.toContain('200');
    expect(proxy.dialled).toEqual([]);
  });
});

test('the proxy forwards a request only after the answer to the previous request of the connection', async () => {
  const arrived = Promise.withResolvers<ServerResponse>();
  let count = 0;
  handle = (_request, response) => {
    count += 1;
    arrived.resolve(response);
  };
  const socket = await proxy.open();
  socket.write('GET http://example.com/ HTTP/1.1\r\nHost: example.com\r\n\r\n');
  const response = await arrived.promise;
  socket.write('GET http://example.com/ HTTP/1.1\r\nHost: example.com\r\n\r\n'.repeat(100));
  // A later connection is answered meanwhile.
  const other = proxy.say(get('http://example.com/', 'example.com'));
  await expect.poll(() => count).toBe(2);
  expect(proxy.dialled).toHaveLength(2);
  response.end();
  await expect.poll(() => count).toBe(3);
  socket.destroy();
  void other.catch(() => {});
});

test.each(['/', 'https://example.com/', 'ftp://example.com/', '*'])(
  'the proxy answers 400 to the URL %s, which does not begin with http:// and a host',
  async (url) => {
    expect(await proxy.say(get(url, 'example.com'))).toMatch(/^HTTP\/1\.1 400 /);
    expect(proxy.dialled).toEqual([]);
  },
);

test('the proxy refuses requests with headers beyond 16 KB', async () => {
  await proxy.say(get('http://example.com/', 'example.com', `X-Large: ${'x'.repeat(20_000)}\r\n`));
  expect(seen).toEqual([]);
});

test('if a server breaks off its answer, the client does not get a complete answer', async () => {
  handle = (_request, response) => {
    response.writeHead(200, { 'content-length': '100' }).write('half');
    setImmediate(() => response.destroy());
  };
  const socket = await proxy.open();
  socket.write(get('http://example.com/', 'example.com'));
  expect(await textOf(socket)).not.toMatch(/^$/);
  expect(socket.destroyed).toBe(true);
});

test('the client gets 502 if the server closes the connection without an answer', async () => {
  handle = (_request, response) => void response.destroy();
  expect(await proxy.say(get('http://example.com/', 'example.com'))).toContain('502 Bad Gateway');
});
