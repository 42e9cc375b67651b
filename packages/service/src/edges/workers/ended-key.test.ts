/** Tests that the end of a key ends the connections that the key opened, on every service process. */
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { joinWorkerPool } from '../../../test/key.ts';
import { newPerson, teamUidOf } from '../../../test/people.ts';
import { acceptedWorker, rawHello, startTestProcess, type TestProcess } from '../../../test/process.ts';
import { openTestService } from '../../../test/service.ts';
import { followStream } from '../../../test/stream.ts';

const service = await openTestService();
let processes: TestProcess[] = [];
beforeAll(async () => {
  processes = [await startTestProcess(service.deps, checkEveryMs), await startTestProcess(service.deps, checkEveryMs)];
});
afterAll(async () => {
  for (const process of processes) await process.close();
});

/** This time is so long that no regular check of the keys happens during the tests, so the processes depend on notices. */
const checkEveryMs = 3_600_000;

/** Opens sockets and streams of the key on all processes; returns the times at which they end, as `performance.now()`. */
async function openAll(key: string): Promise<Promise<number>[]> {
  const runId = await service.newRun();
  const ends: Promise<number>[] = [];
  await joinWorkerPool(service.deps.db, 'box', key);
  for (const { baseUrl } of processes) {
    const worker = await acceptedWorker(baseUrl, key, 'box');
    worker.say(rawHello({ worker_id: 'box' }));
    await worker.roundTrip();
    ends.push(
      vi.waitFor(() => worker.closedAt() ?? Promise.reject(new Error('the socket is open')), {
        timeout: 60_000,
        interval: 10,
      }),
    );
    for (const path of [`/agent/runs/${runId}/events`, '/agent/runs/events']) {
      const reader = await followStream({ ...service, baseUrl }, path, undefined, key);
      ends.push(reader.ended.then(() => performance.now()));
    }
  }
  return ends;
}

const keyIdOf = async (key: string) => {
  const rows = await service.deps.db.query<{ id: string }>('SELECT id FROM api_keys WHERE last_four = $1', [
    key.slice(-4),
  ]);
  return rows[0]?.id ?? '';
};

describe('a key', () => {
  test('that is deleted loses its sockets and streams on every process', async () => {
    const key = await service.newKey();
    const others = await openAll(await service.newKey());
    const ends = await openAll(key);
    await service.ok('DELETE', `/keys/${await keyIdOf(key)}`);
    await Promise.all(ends);
    const first = await Promise.race([...others, service.request('GET', '/keys').then(() => 'they are open')]);
    expect(first, 'connections of another key continue').toBe('they are open');
    for (const process of processes) await expect(acceptedWorker(process.baseUrl, key, 'box')).rejects.toThrow('401');
    await service.deps.db.query('DELETE FROM api_keys WHERE NOT is_operator');
    await service.deps.db.query("SELECT pg_notify('runyard_keys', '')");
    await Promise.all(others);
  });

  test('that expires loses its sockets and streams on every process', async () => {
    const key = await service.newKey({ expiresIn: '1 hour' });
    const ends = await openAll(key);
    const setAt = performance.now();
    await service.deps.db.query(
      `WITH ending AS (UPDATE api_keys SET expires_at = clock_timestamp() + interval '2 seconds' WHERE last_four = $1)
       SELECT pg_notify('runyard_keys', '')`,
      [key.slice(-4)],
    );
    for (const endedAt of await Promise.all(ends)) expect(endedAt - setAt).toBeGreaterThan(1_900);
  });
});

describe('every process ends the connections of the workers of a person', () => {
  const becomes = {
    'after the person became a viewer': (member: string) =>
      service.request('PATCH', member, { body: { role: 'viewer' } }),
    'after the person was removed from the team': (member: string) => service.request('DELETE', member),
  };
  test.each(Object.entries(becomes))('%s', async (_, change) => {
    const team = await teamUidOf(service);
    const person = await newPerson(service, team, 'member');
    await joinWorkerPool(service.deps.db, 'own', person.key);
    const workers: Awaited<ReturnType<typeof acceptedWorker>>[] = [];
    for (const { baseUrl } of processes) {
      const worker = await acceptedWorker(baseUrl, person.key, 'own');
      worker.say(rawHello({ worker_id: 'own' }));
      await worker.roundTrip();
      workers.push(worker);
    }
    const changed = await change(`/teams/${team}/members/${person.uid}`);
    expect(changed.status, changed.text).toBe(200);
    const areClosed = () => workers.every((worker) => worker.closedAt() !== null);
    await expect.poll(areClosed).toBe(true);
    for (const { baseUrl } of processes)
      await expect(acceptedWorker(baseUrl, person.key, 'own')).rejects.toThrow('401');
  });
});

test('the service cuts the connection of a worker that does not answer the close frame', async () => {
  const key = await service.newKey();
  const [process] = processes;
  if (!process) throw new Error('no process');
  const { hostname, port } = new URL(process.baseUrl);
  const socket = connect(Number(port), hostname);
  socket.write(
    `GET /api/v1/selfhosted/worker/ws?worker_id=mute HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${key}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n`,
  );
  const closed = new Promise<number>((resolve) => socket.on('close', () => resolve(performance.now())));
  socket.resume();
  const isThere = () => service.deps.db.query("SELECT FROM worker_connections WHERE worker_id = 'mute'");
  await vi.waitFor(async () => expect(await isThere()).toHaveLength(1), { timeout: 60_000 });
  await service.request('DELETE', `/keys/${await keyIdOf(key)}`);
  const deletedAt = performance.now();
  // The library `ws` alone would wait 30 s for the other side.
  expect((await closed) - deletedAt).toBeLessThan(25_000);
});
