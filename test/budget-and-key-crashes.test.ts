/**
 * Tests three service processes with different clocks on one database. While one process is killed, a team spends its budget through
 * all three processes, and API keys expire or are deleted.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, expect, test, vi } from 'vitest';
import { readAliveInstances } from '../packages/service/src/runs/executions/lease/heartbeat.ts';
import { recordLostRequests } from '../packages/service/src/team/usage/budget/lost-requests.ts';
import { askModel, opus } from '../packages/service/test/budgets.ts';
import { acceptedWorker, rawHello } from '../packages/service/test/process.ts';
import { openTestService } from '../packages/service/test/service.ts';
import { followStream } from '../packages/service/test/stream.ts';
import { startFakeModels } from './fakes/models.ts';
import { closeAtEnd } from './support/close-at-end.ts';
import { type OneService, startService } from './support/service-process.ts';
import { eventually } from './support/system.ts';

interface OneProcess extends OneService {
  /** Id of the row of the process in `service_instances`. */
  readonly instanceId: string;
}

const fake = closeAtEnd(await startFakeModels());
const service = await openTestService({ env: fake.env });
const { db } = service.deps;
const clocksMs = [0, 60_000, -60_000];
const services: OneProcess[] = [];
afterAll(async () => {
  for (const each of services) await each.stop();
});

const instances = async () => (await db.query<{ id: string }>('SELECT id FROM service_instances')).map(({ id }) => id);

async function start(clockAheadMs: number): Promise<OneProcess> {
  const before = await instances();
  const one = await startService({ databaseUrl: service.database.url, key: service.key, clockAheadMs, env: fake.env });
  const instanceId = (await instances()).find((id) => !before.includes(id));
  if (instanceId === undefined) throw new Error('the process gave no sign of life');
  return { ...one, instanceId };
}
for (const clockAheadMs of clocksMs) services.push(await start(clockAheadMs));

/**
 * Kills a process, and moves the times of its rows two minutes into the past, so that the other processes need not wait before they
 * treat it as dead.
 */
async function kill(place: number): Promise<void> {
  const killed = services[place];
  await killed?.stop();
  await db.query(
    `WITH moved AS (UPDATE service_instances SET seen_at = seen_at - interval '2 minutes' WHERE id = $1)
     UPDATE open_model_requests SET created_at = created_at - interval '2 minutes' WHERE service_instance_id = $1`,
    [killed?.instanceId],
  );
}

const originOf = (place: number): string => services[place % services.length]?.origin ?? '';
const sumOf = async (sql: string) => (await db.query<{ sum: number }>(`SELECT (${sql})::float8 AS sum`))[0]?.sum ?? 0;

const statusAt = async (place: number, key: string): Promise<number> => {
  const headers = { authorization: `Bearer ${key}` };
  const answer = await fetch(`${originOf(place)}/api/v1/agent/environments`, { headers });
  await answer.arrayBuffer();
  return answer.status;
};

/**
 * Opens one event stream and one worker connection at each of the processes 1 and 2. Returns a promise for each of the four, which
 * resolves when the stream or connection ends. `pool` must be a pool name that no other person uses.
 */
async function openConnections(key: string, pool: string): Promise<Promise<number>[]> {
  const ends: Promise<number>[] = [];
  for (const place of [1, 2]) {
    const baseUrl = originOf(place);
    const reader = await followStream({ ...service, baseUrl }, '/agent/runs/events', undefined, key);
    ends.push(reader.ended.then(() => performance.now()));
    const worker = await acceptedWorker(baseUrl, key, pool);
    worker.say(rawHello({ worker_id: pool }));
    await worker.roundTrip();
    const closedAt = () => worker.closedAt() ?? Promise.reject(new Error('the socket is open'));
    ends.push(vi.waitFor(closedAt, { timeout: 60_000, interval: 20 }));
  }
  return ends;
}

/** Waits until the process refuses the key. Returns the milliseconds from `from` to this moment. */
async function refusedAfter(place: number, key: string, from: number): Promise<number> {
  await vi.waitFor(async () => expect(await statusAt(place, key)).toBe(401), { timeout: 60_000, interval: 40 });
  return performance.now() - from;
}

test('a key expires at the same time in all processes, although the clocks of the processes differ', async () => {
  const key = await service.newKey({ expiresIn: '1 hour' });
  for (const place of [0, 1, 2]) expect(await statusAt(place, key)).toBe(200);
  const ends = await openConnections(key, 'box-of-expiring-key');
  const setAt = performance.now();
  await db.query(
    `WITH ending AS (UPDATE api_keys SET expires_at = clock_timestamp() + interval '2 seconds' WHERE last_four = $1)
     SELECT pg_notify('runyard_keys', '')`,
    [key.slice(-4)],
  );
  const refused = await Promise.all([0, 1, 2].map((place) => refusedAfter(place, key, setAt)));
  const ended = (await Promise.all(ends)).map((endedAt) => endedAt - setAt);
  // Two clocks are wrong by a minute. A process that used its own clock would refuse the key at once or a minute late.
  for (const afterMs of [...refused, ...ended]) {
    expect(afterMs).toBeGreaterThan(1_900);
    expect(afterMs).toBeLessThan(30_000);
  }
});

test('a key that one process creates works in all processes, and stops working in all when that process deletes the key and is killed', async () => {
  const { body } = await service.request<{ key: string; uid: string }>('POST', `${originOf(0)}/api/v1/keys`, {
    body: { name: 'Short', kind: 'personal', expires_in: '1d' },
  });
  for (const place of [0, 1, 2]) expect(await statusAt(place, body.key)).toBe(200);
  const ends = await openConnections(body.key, 'box-of-deleted-key');
  const answer = service.request('DELETE', `${originOf(0)}/api/v1/keys/${body.uid}`).catch(() => null);
  await vi.waitUntil(async () => (await db.query('SELECT FROM api_keys WHERE id = $1', [body.uid])).length === 0, {
    timeout: 60_000,
    interval: 5,
  });
  const killed = services[0]?.stop();
  for (const place of [1, 2]) await refusedAfter(place, body.key, 0);
  await Promise.all(ends);
  await killed;
  await answer;
  services[0] = await start(clocksMs[0] ?? 0);
});

test('a team is charged exactly the cost of its answers while processes are killed', async () => {
  const runCount = 6;
  const lanes = 2;
  // Cost of one answer: 1,000 input tokens at $4 a million and 40,000 output tokens at $20 a million.
  const answerUsd = 0.804;
  fake.script(() => ({
    text: ['a', 'b', 'c'],
    usage: { input: 1_000, output: 40_000, cacheRead: 0, cacheWrite: 0, reasoning: 0 },
    misbehaviour: { kind: 'slow', delayMs: 40 },
  }));
  let limit = 10_000;
  const setLimit = () => service.request('PATCH', '/budget', { body: { monthly_limit_usd: limit } });
  await setLimit();
  // The worker of these runs exists only as a row of a service instance that sends no heartbeat. Insert this instance as alive, so
  // that the service does not take the runs away from the worker.
  await db.query(`
    CREATE FUNCTION keep_alive() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      INSERT INTO service_instances (id, seen_at) VALUES (NEW.service_instance_id, now() + interval '1 hour') ON CONFLICT DO NOTHING;
      RETURN NEW;
    END $$;
    CREATE TRIGGER keep_alive BEFORE INSERT ON worker_connections FOR EACH ROW EXECUTE FUNCTION keep_alive()`);
  const runs = await Promise.all(
    Array.from({ length: runCount }, () => service.startExecution({ config: { model_id: opus } })),
  );
  const spent = () => sumOf('SELECT sum(spent_usd) FROM team_spend');
  let whole = 0;
  let broken = 0;
  const wrong: string[] = [];
  const spend = async (runToken: string, lane: number): Promise<void> => {
    for (let n = lane; ; n += 1) {
      const answer = await askModel(originOf(n), runToken, { stream: true }).catch(() => null);
      if (answer === null) {
        broken += 1;
        await delay(50);
      } else if (answer.status === 200 && answer.text.includes('message_stop')) whole += 1;
      else {
        // A refused request ends the run, and its token is no longer valid. So the other requests of this run get 401.
        const most = limit;
        // The gateway may refuse a request before the spend reaches the limit, because it also counts open requests. Their cost is
        // added to the spend when they end.
        const isOver = await eventually('the spend', async () => (await spent()) >= most || null).catch(() => false);
        if (!isOver || (answer.code !== 'budget_exceeded' && answer.status !== 401)) wrong.push(JSON.stringify(answer));
        return;
      }
    }
  };
  const spending = runs.flatMap(({ runToken }) => Array.from({ length: lanes }, (_, lane) => spend(runToken, lane)));
  let lost = 0;
  const killAfter = async (place: number, answers: number) => {
    const before = whole;
    await eventually('answers', async () => whole >= before + answers || null);
    await kill(place);
    // The services also call this function in a loop. Call it here too, to count the requests that it finds.
    lost += await recordLostRequests(db, await readAliveInstances(db, 60));
  };
  await killAfter(1, 15);
  services[1] = await start(clocksMs[1] ?? 0);
  // Set a limit that is nearly reached, so that the second kill comes near the end of the budget. Near the end of a budget, the
  // gateway lets each run have only one open request at a time.
  limit = (await spent()) + answerUsd * 30.5;
  await setLimit();
  await killAfter(2, 6);
  await Promise.all(spending);
  await eventually('the accounts', async () => (await sumOf('SELECT count(*) FROM open_model_requests')) === 0 || null);

  expect(wrong).toEqual([]);
  const answered = await sumOf('SELECT count(*) FROM model_requests WHERE status = 200');
  const cut = await sumOf('SELECT count(*) FROM model_requests WHERE status = 502 AND output_tokens = 0');
  expect(cut).toBeGreaterThanOrEqual(lost);
  expect(cut, 'the kills met requests').toBeGreaterThan(0);
  expect(await sumOf('SELECT count(*) FROM model_requests'), 'each is accounted for in one way').toBe(answered + cut);
  // `cut` can include whole answers, because a process can be killed after the client has the whole answer and before the cost is
  // stored.
  expect(answered + cut, 'no answer was free').toBeGreaterThanOrEqual(whole);
  expect(answered).toBeLessThanOrEqual(whole + broken);
  // `asked` can be lower than `answered + cut`, because a process can be killed after it has stored a request and before it sends the
  // request to the provider. The filter leaves out the requests that each process sends to the local endpoint at its start.
  const asked = fake.requests.filter(({ provider }) => provider === 'anthropic').length;
  expect(asked).toBeGreaterThanOrEqual(answered);
  expect(asked).toBeLessThanOrEqual(answered + cut);
  const promptsOfCut = await sumOf('SELECT coalesce(sum(input_cost_usd), 0) FROM model_requests WHERE status = 502');
  expect(await spent()).toBeCloseTo(answered * answerUsd + promptsOfCut, 6);
  expect(await sumOf('SELECT sum(spent_usd) FROM run_spend')).toBeCloseTo(await spent(), 9);
  expect(await sumOf('SELECT sum(cost_usd) FROM usage_days')).toBeCloseTo(await spent(), 9);
  expect(await spent()).toBeGreaterThanOrEqual(limit);
  expect(await spent()).toBeLessThanOrEqual(limit + runCount * answerUsd);
}, 180_000);
