import { once } from 'node:events';
import { Agent, request as httpRequest, type IncomingMessage } from 'node:http';
import { connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { startTestService, type TestService } from '../../../../test/service.ts';
import { defaultTimeouts } from './make-app.ts';

let service: TestService;
afterEach(() => service.close());

/** This time is long enough for a loaded machine, and well below 15 s, which is the shortest default limit. */
const atOnceMs = 10_000;

/** Connects and sends only `text`. Returns the answer and the lifetime of the connection in milliseconds. */
function sendAndWait(text: string): Promise<{ received: string; livedMs: number }> {
  const { port } = new URL(service.baseUrl);
  const startedAt = performance.now();
  return new Promise((resolve, reject) => {
    let received = '';
    const socket = connect(Number(port), '127.0.0.1', () => socket.write(text));
    socket.on('data', (data) => {
      received += data;
    });
    socket.on('error', reject);
    socket.on('close', () => resolve({ received, livedMs: performance.now() - startedAt }));
  });
}

const headOf = (key: string) =>
  `POST /api/v1/agent/runs HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${key}\r\nContent-Type: application/json\r\n`;

describe('a slow client', () => {
  beforeEach(async () => {
    service = await startTestService({
      timeouts: { headersMs: 300, requestMs: 600, checkEveryMs: 50, leastBytes: 50 },
    });
  });

  test('gets 408 and is closed if its headers do not end', async () => {
    const { received, livedMs } = await sendAndWait('GET /healthz HTTP/1.1\r\nHost: a\r\n');
    expect(received).toMatch(/^HTTP\/1\.1 408/);
    expect(livedMs).toBeLessThan(atOnceMs);
  });

  test('gets 408 and is closed if its body does not end', async () => {
    const { received, livedMs } = await sendAndWait(`${headOf(service.key)}Content-Length: 100\r\n\r\n{`);
    expect(received).toMatch(/^HTTP\/1\.1 408/);
    expect(livedMs).toBeLessThan(atOnceMs);
  });

  test('is answered if `leastBytes` of its body arrive in each period, and gets 408 when they no longer do', async () => {
    const send = async (pieces: number) => {
      const socket = connect(Number(new URL(service.baseUrl).port), '127.0.0.1');
      const answer = once(socket, 'data') as Promise<[Buffer]>;
      socket.write(`${headOf(service.key)}Content-Length: ${15 * 20}\r\n\r\n`);
      for (let piece = 0; piece < pieces; piece += 1) {
        socket.write(' '.repeat(20));
        await delay(100);
      }
      const [text] = await answer;
      socket.destroy();
      return Number(text.toString().split(' ')[1]);
    };
    // The whole body takes 1,500 ms, which is more than a period. The body is not JSON.
    expect(await send(15)).toBe(400);
    expect(await send(8)).toBe(408);
  });
});

describe('a client that is refused before its body is read', () => {
  const head = (path: string, length: number) =>
    `POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: ${length}\r\n\r\n`;
  const create = '/api/v1/agent/runs';

  test.each([
    [401, create],
    [404, '/api/v1/nothing'],
  ])('gets %i and the end of the connection at once, before its body has arrived', async (status, path) => {
    service = await startTestService();
    const { received, livedMs } = await sendAndWait(`${head(path, 60_000_000)}{`);
    expect(received).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    expect(received).toMatch(/^connection: close$/im);
    expect(livedMs).toBeLessThan(atOnceMs);
  });

  test('always receives the answer after it has sent everything', async () => {
    service = await startTestService();
    const megabytes = 'x'.repeat(8_000_000);
    for (let i = 0; i < 20; i += 1) {
      const { received } = await sendAndWait(head(create, 60_000_000) + megabytes);
      expect(received).toMatch(/^HTTP\/1\.1 401 .*"error_code"/s);
    }
  });

  /** Connects a client that does not close its side; the second socket is the service's end of the connection. */
  async function connectHalfOpen() {
    const accepted = once(service.app.server, 'connection') as Promise<[Socket]>;
    const { port } = new URL(service.baseUrl);
    const socket = connect({ port: Number(port), host: '127.0.0.1', allowHalfOpen: true });
    socket.on('error', () => undefined).resume();
    const [serverSide] = await accepted;
    return [socket, once(serverSide, 'close')] as const;
  }

  test('is disconnected after `drainMs` if it neither sends the rest of the body nor closes its side of the connection', async () => {
    service = await startTestService({ timeouts: { ...defaultTimeouts, drainMs: 100 } });
    const [socket, closed] = await connectHalfOpen();
    socket.write(head(create, 60_000_000));
    await once(socket, 'end');
    await closed;
    socket.destroy();
  });

  test('cannot send a second request behind the refused body', async () => {
    service = await startTestService();
    const run = `/agent/runs/${await service.newRun()}`;
    const cancel = `POST /api/v1${run}/cancel HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${service.key}\r\nContent-Length: 0\r\n\r\n`;
    const [socket, closed] = await connectHalfOpen();
    socket.write(`${head(create, 10)}{`);
    await once(socket, 'end');
    socket.write(`${'x'.repeat(9)}${cancel}`);
    await closed;
    socket.destroy();
    // When five later cancels of other runs have taken effect, a cancel behind the refused body would have taken effect too.
    for (let i = 0; i < 5; i += 1) {
      const other = `/agent/runs/${await service.newRun()}`;
      expect((await service.request('POST', `${other}/cancel`)).status).toBe(200);
    }
    expect((await service.request<{ state: string }>('GET', run)).body.state).toBe('QUEUED');
  });

  test('keeps its connection if the body arrived together with the headers', async () => {
    service = await startTestService();
    const { port } = new URL(service.baseUrl);
    const socket = connect(Number(port), '127.0.0.1');
    let received = '';
    socket.on('data', (data) => {
      received += data;
    });
    for (const count of [1, 2]) {
      socket.write(`${head(create, 2)}{}`);
      await expect.poll(() => received.match(/HTTP\/1\.1 401 /g)).toHaveLength(count);
    }
    socket.destroy();
  });
});

describe('close()', () => {
  beforeEach(async () => {
    service = await startTestService();
  });

  test('lets a request in flight end on a kept-alive connection, and then finishes', async () => {
    const { db } = service.deps;
    const agent = new Agent({ keepAlive: true, maxSockets: 5 });
    const ask = () =>
      new Promise<number>((resolve, reject) => {
        const request = httpRequest(
          `${service.baseUrl}/api/v1/agent/environments`,
          { agent, headers: { authorization: `Bearer ${service.key}` } },
          (response) => response.resume().on('end', () => resolve(response.statusCode ?? 0)),
        );
        request.on('error', reject).end();
      });
    // Two idle connections that a client keeps open.
    await Promise.all([ask(), ask()]);
    const lock = await db.pool.connect();
    await lock.query('BEGIN; LOCK TABLE environments');
    const inFlight = ask();
    const isWaiting = async () => {
      const rows = await db.query(
        `SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`,
      );
      return rows.length > 0;
    };
    while (!(await isWaiting()));
    const startedAt = performance.now();
    const closed = service.app.close();
    await lock.query('ROLLBACK');
    lock.release();
    expect(await inFlight).toBe(200);
    await closed;
    expect(performance.now() - startedAt).toBeLessThan(atOnceMs);
    agent.destroy();
  });

  test('does not wait for silent clients or half-sent requests', async () => {
    const { port } = new URL(service.baseUrl);
    const sockets = ['', 'GET /healthz HTTP/1.1\r\nHost: a\r\n'].map((text) => {
      const socket = connect(Number(port), '127.0.0.1', () => socket.write(text));
      return socket.on('error', () => undefined);
    });
    await Promise.all(sockets.map((socket) => once(socket, 'connect')));
    const startedAt = performance.now();
    await service.app.close();
    expect(performance.now() - startedAt).toBeLessThan(atOnceMs);
  });

  test('answers an agent that waits for its inbox', async () => {
    const { runToken } = await service.startExecution();
    const waiting = service.request('GET', '/harness-support/inbox?wait_ms=30000', { key: runToken });
    const isWaiting = () => service.deps.db.query('SELECT 1 FROM executions WHERE agent_seen_at IS NOT NULL');
    while ((await isWaiting()).length === 0);
    const startedAt = performance.now();
    await service.app.close();
    expect((await waiting).body).toEqual({ items: [] });
    expect(performance.now() - startedAt).toBeLessThan(atOnceMs);
  });
});

test('a body that is not read yet takes little memory, even if it arrives in pieces of one byte', async () => {
  service = await startTestService();
  const pieces = Promise.withResolvers<number>();
  service.app.server.removeAllListeners('request');
  service.app.server.once('request', (request: IncomingMessage) => {
    const { socket } = request;
    const look = setInterval(() => {
      // Node's parser pauses the socket when it has stored the maximum number of unread bytes of the body.
      if (socket.isPaused()) pieces.resolve(request.readableLength);
    }, 10);
    socket.once('close', () => clearInterval(look));
  });
  const { port } = new URL(service.baseUrl);
  const socket = connect(Number(port), '127.0.0.1');
  socket.on('error', () => undefined);
  socket.write('POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n');
  socket.write('1\r\nx\r\n'.repeat(100_000));
  // The number may exceed Node's limit, because the socket had already read up to 64 KB when the parser paused it.
  expect(await pieces.promise).toBeLessThan(25_000);
  socket.destroy();
});
