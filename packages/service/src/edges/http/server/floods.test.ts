/**
 * Tests that the requests of one caller do not stop another team. The tests count the answers that the flood gets while one request of the
 * other team is answered, because the count depends less on the machine than the time.
 */
import http from 'node:http';
import { connect } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { newPerson, teamUidOf } from '../../../../test/people.ts';
import { openTestService } from '../../../../test/service.ts';

const service = await openTestService();
const list = '/api/v1/agent/runs?limit=20';

/** Sends requests over many connections without a pause. Returns a function that returns the number of answers. */
function flood(connections: number): () => number {
  const agent = new http.Agent({ keepAlive: true, maxSockets: connections });
  const headers = { authorization: `Bearer ${service.otherKey}` };
  let answers = 0;
  let isOver = false;
  const send = (): void => {
    if (isOver) return;
    const request = http.get(`${service.baseUrl}${list}`, { agent, headers }, (response) => {
      expect(response.statusCode).toBe(200);
      response.resume().once('end', () => {
        answers += 1;
        send();
      });
    });
    request.on('error', () => {});
  };
  for (let n = 0; n < connections; n += 1) send();
  onTestFinished(() => {
    isOver = true;
    agent.destroy();
  });
  return () => answers;
}

/** Returns how many answers the flood gets while a request of the first team is answered: the median of some requests. */
async function answersMeanwhile(count: () => number): Promise<number> {
  await expect.poll(count).toBeGreaterThan(50);
  const meanwhile: number[] = [];
  for (let n = 0; n < 5; n += 1) {
    const before = count();
    expect((await service.request('GET', list.slice('/api/v1'.length))).status).toBe(200);
    meanwhile.push(count() - before);
  }
  return meanwhile.sort((one, other) => one - other)[2] ?? Number.NaN;
}

test('a team with 150 requests in progress does not keep another team waiting for all of them', async () => {
  expect(await answersMeanwhile(flood(150))).toBeLessThan(50);
});

test('a connection with thousands of requests in its packets gets one answer after another', async () => {
  const socket = connect(Number(new URL(service.baseUrl).port), '127.0.0.1');
  onTestFinished(() => void socket.destroy());
  let answers = 0;
  socket
    .on('error', () => {})
    .on('data', (data) => {
      answers += String(data).split('HTTP/1.1 200').length - 1;
    });
  const packet = Buffer.from('GET /healthz HTTP/1.1\r\nHost: test\r\n\r\n'.repeat(1_000));
  const more = (error?: Error | null): void => void (error || socket.write(packet, more));
  more();
  expect(await answersMeanwhile(() => answers)).toBeLessThan(200);
});

test('the keys of one person have one share together, so a person with many keys leaves connections to the team', async () => {
  const { db } = service.deps;
  const team = await teamUidOf(service);
  const [one, colleague] = [await newPerson(service, team, 'member'), await newPerson(service, team, 'member')];
  const keys = [one.key];
  for (const name of ['a', 'b']) {
    const body = { name, kind: 'personal' };
    keys.push((await service.request<{ key: string }>('POST', '/keys', { key: one.key, body })).body.key);
  }
  const lock = await db.pool.connect();
  await lock.query('BEGIN; LOCK TABLE saved_views');
  const waiting = keys.flatMap((key) => [1, 2, 3, 4].map(() => service.request('GET', '/saved-views', { key })));
  await expect.poll(() => db.shares.waiting).toBeGreaterThan(4);
  const other = service.request('GET', '/teams', { key: colleague.key }).then(({ status }) => status);
  const late = new Promise((resolve) => setTimeout(resolve, 3_000, 'late'));
  const first = await Promise.race([other, late]);
  await lock.query('ROLLBACK');
  lock.release();
  expect(first).toBe(200);
  await Promise.all(waiting);
});
