import { metricsTable } from '@runyard/contract/metrics/metrics-table';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startFakeModels } from '../../../../../test/fakes/models.ts';
import { closeAtEnd } from '../../../../../test/support/close-at-end.ts';
import { answerAtFixedCost, answerUsd, askModel, opus } from '../../../test/budgets.ts';
import { readSeries } from '../../../test/metrics.ts';
import { assignedRun, startTestProcess, type TestProcess } from '../../../test/process.ts';
import { openTestService, startTestService } from '../../../test/service.ts';
import { testWebhooks } from '../../../test/webhooks.ts';
import { count, observe } from '../../platform/metrics/record.ts';
import { measureQueueAndWorkers } from '../../runs/executions/queue/measure.ts';
import { succeed } from '../../runs/executions/transitions/transitions.ts';
import { makeMetricsServer } from './metrics.ts';

const token = 'token-of-the-metrics';
const fake = closeAtEnd(await startFakeModels());
const service = await openTestService({
  env: { ...fake.env, RUNYARD_METRICS_TOKEN: token, RUNYARD_METRICS_POOLS: 'gpu,box' },
});
const { db } = service.deps;

const scrape = async (): Promise<string> => {
  const answer = await service.request('GET', `${service.baseUrl}/metrics`, { key: token });
  expect(answer.status).toBe(200);
  return answer.text;
};
/** Returns the present value of a series. `series`: the text of its line before the value. */
const valueNow = async (series: string): Promise<number | undefined> => readSeries(await scrape()).get(series);

describe('/metrics on the port of the API', () => {
  test.each([
    ['no key', null],
    ['the key of an administrator', undefined],
    ['a wrong token', `${token}x`],
  ])('answers 401 to %s and shows nothing', async (_, key) => {
    const before = (await valueNow('runyard_authentication_failures_total{credential="metrics"}')) ?? 0;
    const answer = await service.request('GET', `${service.baseUrl}/metrics`, key === undefined ? {} : { key });
    expect(answer.status).toBe(401);
    expect(answer.text).not.toContain('runyard_run');
    expect(await valueNow('runyard_authentication_failures_total{credential="metrics"}')).toBe(before + 1);
  });

  test('answers 404 if no token is set', async () => {
    const without = await startTestService();
    try {
      expect((await without.request('GET', `${without.baseUrl}/metrics`)).status).toBe(404);
    } finally {
      await without.close();
    }
  });
});

describe('/metrics on a separate port', () => {
  let url: string;
  let close: () => void;
  beforeAll(async () => {
    const { metrics } = service.deps;
    if (!metrics) throw new Error('metrics are off');
    const server = makeMetricsServer(metrics, token);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const address = server.address();
    url = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`;
    close = () => void server.close();
  });
  afterAll(() => close());

  test.each([
    ['GET', '/metrics', token, 200],
    ['GET', '/metrics', '', 401],
    ['GET', '/api/v1/agent/runs', token, 404],
    ['POST', '/metrics', token, 405],
  ])('answers %s %s with the token "%s" by %i', async (method, path, key, status) => {
    const answer = await fetch(url + path, { method, headers: { authorization: `Bearer ${key}` } });
    expect(answer.status).toBe(status);
    if (status === 200) expect(answer.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8');
  });
});

describe('the metrics count a run', () => {
  /** Reads all series now. Returns a function that returns the increase of a series since then. */
  const watch = async () => {
    const before = readSeries(await scrape());
    return async () => {
      const after = readSeries(await scrape());
      return (series: string) => (after.get(series) ?? 0) - (before.get(series) ?? 0);
    };
  };
  let workers: TestProcess;
  beforeAll(async () => {
    workers = await startTestProcess(service.deps);
  });
  afterAll(() => workers.close());

  test('from its create to its end, with the time in the queue, the time to start and the duration', async () => {
    const increases = await watch();
    const { runToken: key, say, close } = await assignedRun(workers.baseUrl, service.key, service.newRun);
    await say('task_claimed', { worker_id: 'box' });
    const began = { occurred_at: new Date().toISOString() };
    const events = [
      { seq: 1, ...began, type: 'agent_started', harness: 'runyard', model_id: 'runbook' },
      { seq: 2, ...began, type: 'turn_started', step_id: 'one', prompt: 'Do it' },
    ];
    const agent = (path: string, body: object) => service.request('POST', `/harness-support/${path}`, { key, body });
    expect((await agent('events', { events })).status).toBe(200);
    expect((await agent('finish-task', { success: true, summary: 'Done' })).status).toBe(200);
    close();
    const increase = await increases();
    for (const name of [
      'runyard_run_transitions_total{state="QUEUED"}',
      'runyard_run_transitions_total{state="PENDING"}',
      'runyard_run_transitions_total{state="CLAIMED"}',
      'runyard_run_transitions_total{state="INPROGRESS"}',
      'runyard_run_transitions_total{state="SUCCEEDED"}',
      'runyard_run_queue_seconds_count{pool="box"}',
      'runyard_run_start_seconds_count',
      'runyard_run_duration_seconds_count{state="SUCCEEDED"}',
    ])
      expect([name, increase(name)]).toEqual([name, 1]);
    const [queue, start, duration] = [
      increase('runyard_run_queue_seconds_sum{pool="box"}'),
      increase('runyard_run_start_seconds_sum'),
      increase('runyard_run_duration_seconds_sum{state="SUCCEEDED"}'),
    ];
    expect(queue).toBeGreaterThan(0);
    expect(start).toBeGreaterThan(queue);
    expect(duration).toBeGreaterThan(start);
    for (const [surface, status] of [
      ['api', '2xx'],
      ['agent', '2xx'],
    ])
      expect(
        increase(`runyard_http_request_duration_seconds_count{surface="${surface}",status="${status}"}`),
      ).toBeGreaterThan(0);
  });

  test('with one start of its sandbox, although the worker reports the start twice, with denied connections and with a failure', async () => {
    const increases = await watch();
    const { say, close } = await assignedRun(workers.baseUrl, service.key, service.newRun);
    await say('task_claimed', { worker_id: 'box' });
    for (const _ of ['first', 'repeated']) await say('sandbox_ready', { backend: 'gvisor', spawn_ms: 250 });
    const denied = (host: string, count = 1) => ({ host, port: 443, reason: 'host_not_allowed', count });
    await say('connections_denied', { number: 1, total: 1, connections: [denied('a.example')] });
    await say('connections_denied', { number: 2, total: 4, connections: [denied('b.example')] });
    const all = [denied('a.example', 3), denied('b.example', 4)];
    await say('connections_denied', { number: 21, total: 12, connections: all });
    await say('task_failed', { message: 'no space', failure: { phase: 'spawn', reason: 'disk_limit' } });
    close();
    const increase = await increases();
    const series = {
      'runyard_sandbox_start_seconds_count{backend="gvisor"}': 1,
      'runyard_sandbox_start_seconds_sum{backend="gvisor"}': 0.25,
      'runyard_egress_denied_total{reason="host_not_allowed"}': 7,
      'runyard_egress_denied_total{reason="other"}': 5,
      'runyard_sandbox_failures_total{phase="spawn",reason="disk_limit"}': 1,
    };
    expect(Object.fromEntries(Object.keys(series).map((name) => [name, increase(name)]))).toEqual(series);
  });

  test('that failed, by its state and error code, and a refused request by its status', async () => {
    const increases = await watch();
    const { runToken: key } = await service.startExecution();
    const body = { success: false, summary: 'no', error: { code: 'environment_setup_failed', message: 'no' } };
    expect((await service.request('POST', '/harness-support/finish-task', { key, body })).status).toBe(200);
    expect((await service.request('GET', '/agent/runs/unknown')).status).toBe(404);
    const increase = await increases();
    expect(increase('runyard_run_failures_total{state="FAILED",code="environment_setup_failed"}')).toBe(1);
    expect(increase('runyard_http_request_duration_seconds_count{surface="api",status="4xx"}')).toBe(1);
  });
});

test('the metrics do not count a change that was rolled back', async () => {
  const series = 'runyard_run_transitions_total{state="SUCCEEDED"}';
  const before = await valueNow(series);
  const { runId, executionId } = await service.startExecution();
  await db.query(`UPDATE runs SET state = 'INPROGRESS' WHERE id = $1`, [runId]);
  const failing = db.transaction(async (tx) => {
    await succeed(tx, { runId, executionId, args: { idle_seconds: 0, stop_seconds: 5 } });
    throw new Error('rolled back');
  });
  await expect(failing).rejects.toThrow('rolled back');
  expect(await valueNow(series)).toBe(before);
});

test('the metrics count requests, errors, tokens and cost of a model', async () => {
  answerAtFixedCost(fake);
  const { runToken } = await service.startExecution({ config: { model_id: opus } });
  expect((await askModel(service.baseUrl, runToken)).status).toBe(200);
  await expect.poll(() => valueNow(`runyard_model_requests_total{model="${opus}",result="answered"}`)).toBe(1);
  expect(await valueNow(`runyard_model_tokens_total{model="${opus}",kind="output"}`)).toBe(40);
  expect(await valueNow(`runyard_model_cost_dollars_total{model="${opus}"}`)).toBeCloseTo(answerUsd, 6);
  fake.misbehave({ kind: 'status', status: 400, message: 'no' });
  fake.misbehave({ kind: 'status', status: 500, message: 'not now' });
  for (const status of [400, 500]) expect((await askModel(service.baseUrl, runToken)).status).toBe(status);
  for (const result of ['refused', 'failed'])
    await expect.poll(() => valueNow(`runyard_model_requests_total{model="${opus}",result="${result}"}`)).toBe(1);
  expect(await valueNow(`runyard_model_request_duration_seconds_count{model="${opus}"}`)).toBe(3);
  expect((await askModel(service.baseUrl, 'ryr_unknown')).status).toBe(401);
  expect(await valueNow('runyard_authentication_failures_total{credential="run_token"}')).toBe(1);
});

test('the metrics count deliveries by result and scheme', async () => {
  const { create, send } = await testWebhooks(service);
  const webhook = await create();
  await send(webhook);
  await send(webhook, { token: 'wrong' });
  await send({ url: `${webhook.url.slice(0, -22)}AAAAAAAAAAAAAAAAAAAAAA`, secret: 'x' });
  const series = readSeries(await scrape());
  expect(series.get('runyard_webhook_deliveries_total{result="accepted",scheme="token"}')).toBe(1);
  expect(series.get('runyard_webhook_deliveries_total{result="unauthenticated",scheme="token"}')).toBe(1);
  expect(series.get('runyard_webhook_deliveries_total{result="not_found",scheme="unknown"}')).toBe(1);
});

test('the metrics show depth and age of the queue for each pool that a setting names, and for all other pools together', async () => {
  await service.newRun({ config: { worker_host: 'gpu' } });
  await service.newRun({ config: { worker_host: 'a-secret-pool' } });
  await service.newRun({ config: { worker_host: 'another-pool' } });
  await db.query(`UPDATE executions SET available_at = now() - interval '90 seconds' WHERE pool = 'gpu'`);
  const readings = await measureQueueAndWorkers(db, ['gpu', 'box']);
  const values = Object.fromEntries(
    readings.map(({ name, labels, value }) => [`${name} ${Object.values(labels).join()}`, value]),
  );
  expect(values).toMatchObject({
    'runyard_queue_depth gpu': 1,
    'runyard_queue_depth other': 2,
    'runyard_worker_slots hosted': 1000,
    'runyard_worker_slots_taken gpu': 0,
    'runyard_workers_unable hosted': 0,
  });
  await db.query(
    `UPDATE worker_connections SET problem = 'its disk is full', disk_free_bytes = 5, disk_total_bytes = 9`,
  );
  const later = await measureQueueAndWorkers(db, []);
  expect(later).toContainEqual({
    name: 'runyard_workers_unable',
    labels: { pool: 'hosted' },
    value: expect.any(Number),
  });
  expect(later.find(({ name }) => name === 'runyard_workers_unable')?.value).toBeGreaterThan(0);
  expect(later).toContainEqual({ name: 'runyard_worker_free_bytes', labels: { pool: 'hosted' }, value: 5 });
  await db.query('UPDATE worker_connections SET problem = NULL');
  expect(values['runyard_queue_age_seconds gpu']).toBeGreaterThan(89);
});

test('the metrics show whether the service is ready, and the age of the last backup', async () => {
  expect(readSeries(await scrape()).get('runyard_ready')).toBe(1);
  await db.query(`UPDATE installation SET backed_up_at = now() - interval '1 day'`);
  await expect.poll(async () => readSeries(await scrape()).get('runyard_backup_age_seconds')).toBeGreaterThan(86_399);
});

describe('under attack', () => {
  test('a flood of label values does not make the number of series grow', async () => {
    const linesNow = async () => readSeries(await scrape()).size;
    const flood = (from: number) => {
      for (let index = from; index < from + 10_000; index += 1) {
        const value = `attacker-${index}`;
        count('runyard_model_requests_total', { model: value, result: 'answered' });
        count('runyard_model_tokens_total', { model: value, kind: value });
        observe('runyard_model_request_duration_seconds', { model: value }, 1);
        count('runyard_webhook_deliveries_total', { result: value, scheme: value });
        count('runyard_sandbox_failures_total', { phase: value, reason: value });
        count('runyard_egress_denied_total', { reason: value });
        observe('runyard_run_queue_seconds', { pool: value }, 1);
      }
    };
    flood(0);
    const size = await linesNow();
    flood(10_000);
    expect(await linesNow()).toBe(size);
    const text = await scrape();
    expect(text).not.toContain('attacker-');
    expect(text).toContain('runyard_model_requests_total{model="other",result="answered"} 20000');
  });

  test('no series has a name, label or value that is not in the table', async () => {
    const allowed = new Map(
      Object.entries(metricsTable).map(([name, { labels }]) => [name, new Set([...Object.keys(labels), 'le'])]),
    );
    for (const series of readSeries(await scrape()).keys()) {
      const [, name = '', labels = ''] = /^(\w+)(?:\{(.*)\})?$/.exec(series) ?? [];
      const known = allowed.get(name) ?? allowed.get(name.replace(/_(bucket|sum|count)$/, ''));
      expect([series, known]).not.toEqual([series, undefined]);
      for (const [, label = ''] of labels.matchAll(/(\w+)="/g))
        expect([series, known?.has(label)]).toEqual([series, true]);
    }
  });

  test('a prompt, a name, a key and a run id are in no metric', async () => {
    const planted = 'planted-prompt-and-secret';
    const { runToken, runId } = await service.startExecution({
      prompt: planted,
      title: planted,
      name: planted,
      metadata: { planted },
      config: { model_id: opus },
    });
    await askModel(service.baseUrl, runToken, { messages: [{ role: 'user', content: planted }] });
    await service.request('GET', `/agent/runs/${planted}?x=${planted}`, { key: planted });
    const text = await scrape();
    for (const secret of [planted, runToken, runId, service.key, token, service.teamId])
      expect([secret, text.includes(secret)]).toEqual([secret, false]);
  });
});

test('the service reads the gauges only once for many concurrent scrapers', async () => {
  let readings = 0;
  service.deps.metrics?.addGauges([
    async () => {
      readings += 1;
      return [];
    },
  ]);
  await Promise.all(Array.from({ length: 50 }, scrape));
  expect(readings).toBeLessThanOrEqual(1);
});
