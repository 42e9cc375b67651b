/** Tests repeated requests of published clients, which send no Idempotency-Key but count how often they have sent a request. */
import { Agent, request } from 'node:http';
import { apiPrefix } from '@runyard/contract/wire/route';
import pg from 'pg';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { openCuttingProxy } from '../../../../../../test/fakes/cutting-proxy.ts';
import { closeAtEnd } from '../../../../../../test/support/close-at-end.ts';
import { startTestProcess } from '../../../../test/process.ts';
import { openTestService } from '../../../../test/service.ts';

const service = await openTestService();
const { db } = service.deps;
const second = closeAtEnd(await startTestProcess(service.deps));
const proxy = closeAtEnd(await openCuttingProxy(service.baseUrl));

let number = 0;
let body: { prompt: string };
beforeEach(() => {
  number += 1;
  body = { prompt: `Do it, ${number}.` };
  proxy.leadTo(service.baseUrl);
});

interface Sending {
  readonly origin?: string;
  readonly attempt?: number;
  readonly path?: string;
  readonly body?: object;
  readonly key?: string;
  readonly agent?: Agent;
  readonly signal?: AbortSignal;
}

interface Sent {
  readonly status: number;
  readonly runId: string;
}

/** Sends a POST as a published client does. Returns null if the connection was closed without an answer. */
function post(sending: Sending = {}): Promise<Sent | null> {
  return new Promise((resolve) => {
    const asked = request((sending.origin ?? service.baseUrl) + apiPrefix + (sending.path ?? '/agent/runs'), {
      method: 'POST',
      agent: sending.agent ?? false,
      headers: {
        'content-type': 'application/json',
        connection: 'keep-alive',
        authorization: `Bearer ${sending.key ?? service.key}`,
        'x-stainless-retry-count': String(sending.attempt ?? 0),
      },
      ...(sending.signal ? { signal: sending.signal } : {}),
    });
    asked.on('error', () => resolve(null));
    asked.on('response', async (answer) => {
      const text = Buffer.concat(await answer.toArray()).toString();
      resolve({ status: answer.statusCode ?? 0, runId: JSON.parse(text).run_id });
    });
    asked.end(JSON.stringify(sending.body ?? body));
  });
}

const runs = async (): Promise<string[]> =>
  (
    await db.query<{ id: string }>('SELECT run_id AS id FROM run_requests WHERE prompt = $1 ORDER BY run_id', [
      body.prompt,
    ])
  ).map(({ id }) => id);

/** Resolves when the service has recorded for every answer whether it was sent or lost. */
const untilNoted = (column: 'sent_at' | 'closed_at') =>
  vi.waitUntil(
    async () => {
      const open = await db.query(
        `SELECT FROM client_answers a JOIN run_requests r ON r.run_id::text = a.response->>'run_id'
         WHERE r.prompt = $1 AND a.${column} IS NULL`,
        [body.prompt],
      );
      return open.length === 0;
    },
    { timeout: 60_000 },
  );

/** Creates a run and drops the answer. */
async function createWithoutAnswer(sending: Sending = {}): Promise<void> {
  proxy.loseAnswers(1);
  expect(await post({ origin: proxy.url, ...sending })).toBeNull();
  await vi.waitUntil(async () => (await runs()).length > 0, { timeout: 60_000 });
  await untilNoted('closed_at');
}

/** Creates a run on a connection that is used for further requests. */
async function createAndReceive(agent: Agent): Promise<string> {
  const made = await post({ agent });
  await untilNoted('sent_at');
  return made?.runId ?? '';
}

describe('a repeat of a create whose answer was lost', () => {
  test('gets the first run, also from another service process, and at the old path', async () => {
    await createWithoutAnswer();
    const repeated = await post({ attempt: 1, origin: second.baseUrl, path: '/agent/run' });
    expect(repeated).toEqual({ status: 200, runId: (await runs())[0] });
    expect(await runs()).toHaveLength(1);
  });

  test('gets the first run as often as the answer is lost', async () => {
    await createWithoutAnswer();
    proxy.loseAnswers(1);
    expect(await post({ origin: proxy.url, attempt: 1 })).toBeNull();
    await untilNoted('closed_at');
    expect((await post({ attempt: 2 }))?.runId).toBe((await runs())[0]);
    expect(await runs()).toHaveLength(1);
  });

  test('creates a separate run if it has another key or body, or arrives after ten minutes', async () => {
    await createWithoutAnswer();
    const first = await runs();
    expect(first).not.toContain((await post({ attempt: 1, key: await service.newKey() }))?.runId);
    expect(first).not.toContain((await post({ attempt: 1, body: { ...body, title: 'Other' } }))?.runId);
    await db.query(`UPDATE client_answers SET created_at = now() - interval '11 minutes', sent_at = NULL`);
    expect(first).not.toContain((await post({ attempt: 1 }))?.runId);
    expect(await runs()).toHaveLength(4);
  });

  test('creates a separate run if it declares that it is not a repeat', async () => {
    await createWithoutAnswer();
    expect(await runs()).not.toContain((await post({ attempt: 0, agent: new Agent({ keepAlive: true }) }))?.runId);
    expect(await runs()).toHaveLength(2);
  });
});

test('two lost creates of the same body count as two when they are repeated', async () => {
  await createWithoutAnswer();
  await createWithoutAnswer();
  const both = await runs();
  const repeated = await Promise.all([post({ attempt: 1 }), post({ attempt: 1, origin: second.baseUrl })]);
  expect(repeated.map((sent) => sent?.runId).sort()).toEqual(both);
  expect(await runs()).toEqual(both);
});

test('a repeat of a create that never arrived is not treated as a repeat of an earlier create', async () => {
  const agent = new Agent({ keepAlive: true });
  const received = await createAndReceive(agent);
  const repeated = await post({ attempt: 1, agent });
  expect(repeated?.runId).not.toBe(received);
  expect(await runs()).toHaveLength(2);
  agent.destroy();
});

test('a follow-up whose answer was lost reaches the run only once', async () => {
  const runId = await service.newRun(body);
  const path = `/agent/runs/${runId}/followups`;
  proxy.loseAnswers(1);
  expect(await post({ origin: proxy.url, path, body: { message: 'Go on.' } })).toBeNull();
  const followups = () => db.query('SELECT id FROM followups WHERE run_id = $1', [runId]);
  await vi.waitUntil(async () => (await followups()).length > 0, { timeout: 60_000 });
  const newest = 'SELECT closed_at FROM client_answers ORDER BY created_at DESC LIMIT 1';
  await vi.waitUntil(async () => (await db.query(newest))[0]?.closed_at, { timeout: 60_000 });
  expect((await post({ path, body: { message: 'Go on.' }, attempt: 1 }))?.status).toBe(200);
  expect(await followups()).toHaveLength(1);
});

/** Waits until this number of statements wait for a lock. */
const waiting = async (count: number) =>
  await vi.waitUntil(
    async () => {
      const [row] = await db.query<{ waiting: number }>(
        `SELECT count(*)::int AS waiting FROM pg_locks l JOIN pg_stat_activity a USING (pid)
         WHERE NOT l.granted AND a.datname = current_database()`,
      );
      return row?.waiting === count;
    },
    { timeout: 60_000 },
  );

test.each([
  ['alone', {}],
  ['with a file', { attachments: [{ file_name: 'a', mime_type: 'text/plain', data: 'YQ==' }] }],
])('a repeat waits for the first attempt that is still being written, %s', async (_, more) => {
  const blocker = new pg.Client({ connectionString: service.database.url });
  await blocker.connect();
  // The first attempt waits for this lock at the end of its statement, because the rows of the statement refer to the
  // team. Meanwhile it holds the lock that
  // the repeat needs.
  await blocker.query(`BEGIN; SELECT FROM teams WHERE id = '${service.teamId}' FOR UPDATE`);
  const given = { ...body, ...more };
  const leaving = new AbortController();
  const first = post({ body: given, signal: leaving.signal });
  await waiting(1);
  leaving.abort();
  expect(await first).toBeNull();
  const repeated = post({ body: given, attempt: 1, origin: second.baseUrl });
  await waiting(2);
  await blocker.query('COMMIT');
  await blocker.end();
  expect(await repeated).toEqual({ status: 200, runId: (await runs())[0] });
  expect(await runs()).toHaveLength(1);
});

test('a first attempt writes nothing if its client disconnects while the attempt waits for the previous batch', async () => {
  const blocker = new pg.Client({ connectionString: service.database.url });
  await blocker.connect();
  await blocker.query(`BEGIN; SELECT FROM teams WHERE id = '${service.teamId}' FOR UPDATE`);
  const before = post({ body: { prompt: 'before' } });
  await waiting(1);
  const leaving = new AbortController();
  const first = post({ body, signal: leaving.signal });
  // Wait until the service has read the first attempt. The answer to a later request shows this.
  await fetch(`${service.baseUrl}/healthz`);
  leaving.abort();
  expect(await first).toBeNull();
  const repeated = post({ body, attempt: 1, origin: second.baseUrl });
  await waiting(2);
  await blocker.query('COMMIT');
  await blocker.end();
  expect((await before)?.status).toBe(200);
  // When this later create is answered, the batch with the first attempt is complete, so the first attempt would have created its run.
  expect((await post({ body: { prompt: 'behind' } }))?.status).toBe(200);
  expect(await runs()).toEqual([(await repeated)?.runId]);
});
