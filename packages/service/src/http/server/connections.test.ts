import { once } from 'node:events';
import { Agent, request as httpRequest } from 'node:http';
import { connect } from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { startTestService, type TestService } from '../../../test/service.ts';

let service: TestService;
afterEach(() => service.close());

/** Long enough for a loaded machine, and well below 15 s, the shortest of the usual limits. */
const atOnceMs = 10_000;

/** Sends `text` and then nothing; returns the answer and the life of the connection in milliseconds. */
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

describe('a slow client', () => {
  beforeEach(async () => {
    service = await startTestService({ timeouts: { headersMs: 300, requestMs: 600, checkEveryMs: 50 } });
  });

  test('gets 408 and is closed if its headers do not end', async () => {
    const { received, livedMs } = await sendAndWait('GET /healthz HTTP/1.1\r\nHost: a\r\n');
    expect(received).toMatch(/^HTTP\/1\.1 408/);
    expect(livedMs).toBeLessThan(atOnceMs);
  });

  test('gets 408 and is closed if its body does not end', async () => {
    const { received, livedMs } = await sendAndWait(
      `POST /api/v1/agent/runs HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${service.key}\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{`,
    );
    expect(received).toMatch(/^HTTP\/1\.1 408/);
    expect(livedMs).toBeLessThan(atOnceMs);
  });
});

describe('a client', () => {
  beforeEach(async () => {
    service = await startTestService({ timeouts: { headersMs: 2_000, requestMs: 2_000, checkEveryMs: 50 } });
  });

  test('without a key is refused before its body is read', async () => {
    const { received, livedMs } = await sendAndWait(
      `POST /api/v1/agent/runs HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 60000000\r\n\r\n{`,
    );
    expect(received).toMatch(/^HTTP\/1\.1 401/);
    expect(livedMs).toBeLessThan(atOnceMs);
  });
});

describe('close()', () => {
  beforeEach(async () => {
    service = await startTestService();
  });

  test('lets a request in flight end, on a connection that is kept alive, and is done with it', async () => {
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

  test('answers an agent that waits in its inbox', async () => {
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
