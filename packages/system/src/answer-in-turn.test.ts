import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { expect, onTestFinished, test } from 'vitest';
import { answerInTurn } from './answer-in-turn.ts';

type Handler = (request: IncomingMessage, response: ServerResponse) => void;

async function listen(handler: Handler | Server): Promise<{ server: Server; open: () => Socket }> {
  const server = typeof handler === 'function' ? createServer(handler) : handler;
  answerInTurn(server);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return {
    server,
    open: () => {
      const socket = connect(port, '127.0.0.1');
      socket.on('error', () => {});
      onTestFinished(() => void socket.destroy());
      return socket;
    },
  };
}

const get = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: test\r\n\r\n`;
const last = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n`;

test('starts the next request of a connection only after the answer to the previous request', async () => {
  const waiting: ServerResponse[] = [];
  const { open } = await listen((_request, response) => void waiting.push(response));
  const socket = open();
  socket.write(get('/').repeat(5_000));
  await expect.poll(() => waiting.length).toBe(1);
  const other = open();
  other.write(get('/'));
  await expect.poll(() => waiting.length).toBe(2);
  waiting[0]?.end();
  await expect.poll(() => waiting.length).toBe(3);
});

test('does not read the requests of a connection that wait', async () => {
  const { open } = await listen(() => {});
  const socket = open();
  const packet = Buffer.from(get('/').repeat(10_000));
  let isFull = false;
  for (let sent = 0; sent < 100 && !isFull; sent += 1) {
    const isFlushed = new Promise((resolve) => socket.write(packet, () => resolve(true)));
    isFull = (await Promise.race([isFlushed, new Promise((resolve) => setTimeout(resolve, 500, false))])) === false;
  }
  expect(isFull).toBe(true);
});

test('answers a client that sends requests without end as fast as it can, without keeping what waits', async () => {
  let count = 0;
  const { open } = await listen((_request, response) => {
    count += 1;
    setImmediate(() => response.end());
  });
  const sockets = Array.from({ length: 30 }, () => open().resume());
  const packet = Buffer.from(get('/').repeat(2_000));
  for (const socket of sockets) {
    const more = (error?: Error | null): void => void (error || socket.write(packet, more));
    more();
  }
  const before = process.memoryUsage().external;
  await expect.poll(() => count, { timeout: 60_000 }).toBeGreaterThan(3_000);
  expect(sockets.every((socket) => !socket.destroyed)).toBe(true);
  expect(process.memoryUsage().external - before).toBeLessThan(30 * 1024 * 1024);
});

test('a connection with many requests in a packet gets one answer in a turn of the event loop', async () => {
  let count = 0;
  const { open } = await listen((_request, response) => {
    count += 1;
    response.end();
  });
  open().write(get('/').repeat(2_000));
  await expect.poll(() => count).toBeGreaterThan(0);
  let most = 0;
  for (let before = count; count < 2_000; before = count) {
    await new Promise((resolve) => setImmediate(resolve));
    most = Math.max(most, count - before);
  }
  expect(most).toBe(1);
});

/** A number generator with a seed, so that a failure can be repeated. */
function random(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

test.each(Array.from({ length: 60 }, (_, seed) => seed))(
  'hands over each request whole and in order, in any pieces (seed %i)',
  async (seed) => {
    const pick = random(seed);
    const seen: string[] = [];
    let inProgress = 0;
    let most = 0;
    const { open } = await listen(async (request, response) => {
      inProgress += 1;
      most = Math.max(most, inProgress);
      const body = await text(request);
      if (pick(2) === 0) await new Promise((resolve) => setImmediate(resolve));
      seen.push(`${request.method} ${request.url} ${body}`);
      inProgress -= 1;
      response.end(body);
    });
    const bodies = [
      '',
      'a',
      '0\r\n\r\n',
      '\n\n\n0\n\nGET /x HTTP/1.1\r\n\r\n',
      'GET / HTTP/1.1\r\nHost: x\r\n\r\n',
      '00\n\n'.repeat(50),
    ];
    const expected: string[] = [];
    let sent = '';
    for (let index = 0; index < 12; index += 1) {
      const body = bodies[pick(bodies.length)] ?? '';
      const path = `/${seed}/${index}`;
      const form = pick(3);
      const end = pick(2) === 0 ? '\r\n' : '';
      if (form === 0) {
        sent += `${end}${get(path)}`;
        expected.push(`GET ${path} `);
      } else {
        const headers = form === 1 ? `Content-Length: ${body.length}` : 'Transfer-Encoding: chunked';
        const at = pick(body.length + 1);
        const chunks = [body.slice(0, at), body.slice(at)].filter((each) => each !== '');
        const framed =
          form === 1 ? body : `${chunks.map((each) => `${each.length.toString(16)}\r\n${each}\r\n`).join('')}0\r\n\r\n`;
        sent += `POST ${path} HTTP/1.1\r\nHost: test\r\n${headers}\r\n\r\n${framed}`;
        expected.push(`POST ${path} ${body}`);
      }
    }
    sent += last('/end');
    expected.push('GET /end ');
    const socket = open();
    const answer = text(socket);
    for (let at = 0; at < sent.length; ) {
      const length = [1 + pick(7), 1 + pick(400), sent.length][pick(3)] ?? 1;
      socket.write(sent.slice(at, at + length));
      at += length;
      if (pick(3) === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    expect((await answer).match(/HTTP\/1\.1 200 OK/g)).toHaveLength(expected.length);
    expect(seen).toEqual(expected);
    expect(most).toBe(1);
  },
);

test('a connection that sends only empty lines leaves turns to the others', async () => {
  const { open } = await listen((_request, response) => void response.end());
  const flood = open();
  const lines = Buffer.alloc(1024 * 1024, '\n');
  const more = (error?: Error | null): void => void (error || flood.write(lines, more));
  more();
  const socket = open();
  const answers = text(socket);
  socket.write(last('/'));
  expect(await answers).toContain('200 OK');
  flood.destroy();
});

test('gives the bytes after an upgrade to its listener', async () => {
  const { server, open } = await listen((_request, response) => void response.end());
  const received: string[] = [];
  server.on('upgrade', (_request, socket: Socket, head: Buffer) => {
    if (head.length > 0) socket.unshift(head);
    socket.on('data', (data) => received.push(String(data)));
  });
  const socket = open();
  socket.write(`GET / HTTP/1.1\r\nHost: test\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\none`);
  await expect.poll(() => received.join('')).toBe('one');
  socket.write('two');
  await expect.poll(() => received.join('')).toBe('onetwo');
});

test('gives the bytes of a tunnel to no parser, even if the listener for CONNECT was added first', async () => {
  const server = createServer((request, response) => void response.end(request.url));
  server.on('connect', (_request, socket: Socket) => {
    socket.write('HTTP/1.1 200 OK\r\n\r\n');
    socket.pipe(socket);
  });
  const { open } = await listen(server);
  const tunnel = open();
  const echoed = text(tunnel);
  tunnel.write('CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n');
  await once(tunnel, 'readable');
  // Node gives the parser of the tunnel to the next connections.
  const others = Array.from({ length: 3 }, open);
  for (const other of others) {
    other.write('GET /own HTTP/1.1\r\n');
    await once(other, 'connect');
  }
  const answers = others.map((other) => text(other));
  tunnel.end('X-Of-Tunnel: 1\r\n\r\n\0');
  expect(await echoed).toContain('X-Of-Tunnel: 1\r\n\r\n\0');
  for (const other of others) other.write('Host: a\r\nConnection: close\r\n\r\n');
  for (const answer of await Promise.all(answers)) expect(answer).toMatch(/^HTTP\/1.1 200 OK.*\/own$/s);
});

test('answers the requests in a tunnel that ends in the server itself', async () => {
  const { server, open } = await listen((request, response) => void response.end(request.url));
  server.on('connect', (_request, socket: Socket) => {
    socket.write('HTTP/1.1 200 OK\r\n\r\n');
    server.emit('connection', socket);
  });
  const socket = open();
  const answer = text(socket);
  socket.write(`CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n${get('/inside')}${last('/again')}`);
  expect(await answer).toMatch(/\/inside.*\/again/s);
});

test('a body with trailers does not carry the requests behind it past the gate', async () => {
  const waiting: ServerResponse[] = [];
  const { open } = await listen((request, response) => {
    request.resume();
    waiting.push(response);
  });
  const body =
    'POST / HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n0\n\r\n00;a=b\r\nA: b\r\nC: d\r\n\r\n';
  open().write(body.repeat(3) + get('/').repeat(500));
  for (const count of [1, 2, 3, 4]) {
    await expect.poll(() => waiting.length).toBe(count);
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(waiting.length).toBe(count);
    waiting[count - 1]?.end();
  }
});
