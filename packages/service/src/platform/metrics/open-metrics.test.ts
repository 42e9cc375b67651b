import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, expect, test, vi } from 'vitest';
import { startFakeCollector } from '../../../../../test/fakes/collector.ts';
import { closeAtEnd } from '../../../../../test/support/close-at-end.ts';
import { loadedBy } from '../../../../../test/support/loaded-modules.ts';
import { createTestDatabase } from '../../../test/database.ts';
import { readSeries } from '../../../test/metrics.ts';
import { reading } from './gauges.ts';
import { type MetricsOptions, openMetrics } from './open-metrics.ts';
import { measureProcess } from './process-gauges.ts';
import { count, observe } from './record.ts';

const collector = closeAtEnd(await startFakeCollector());
afterEach(() => vi.unstubAllEnvs());

const warnings: unknown[] = [];
const log = { warn: (...line: unknown[]) => void warnings.push(line) } as unknown as MetricsOptions['log'];
const known = { isModel: (id: string) => id === 'a/model', isPool: () => false };

const open = async (options: Partial<MetricsOptions> = {}, env: Record<string, string> = {}) => {
  for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value);
  return await openMetrics({ isRead: false, env: process.env, known, log, ...options });
};

test.each([
  ['no variable is set', {}],
  ['the SDK is disabled', { OTEL_SDK_DISABLED: 'true', OTEL_EXPORTER_OTLP_ENDPOINT: collector.url }],
  ['the exporter is none', { OTEL_METRICS_EXPORTER: 'none', OTEL_EXPORTER_OTLP_ENDPOINT: collector.url }],
  ['only traces are sent', { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: collector.url }],
])('metrics are off if no port, token or collector needs them and %s', async (_, env) => {
  expect(await open({}, env)).toBeUndefined();
});

test.each([
  ['http/json', 'application/json'],
  ['http/protobuf', 'application/x-protobuf'],
])(
  'sends metrics by OTLP as %s with the headers and the service name of the standard variables',
  async (protocol, type) => {
    const metrics = await open(
      {},
      {
        OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
        OTEL_EXPORTER_OTLP_PROTOCOL: protocol,
        OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20of-the-collector',
        OTEL_SERVICE_NAME: 'my-runyard',
      },
    );
    metrics?.addGauges([() => [reading('runyard_stored_bytes', {}, 7)]]);
    count('runyard_blob_written_bytes_total', {}, 10);
    await metrics?.close();
    const sent = collector.requests.at(-1);
    expect(sent).toMatchObject({
      path: '/v1/metrics',
      headers: { 'content-type': type, authorization: 'Bearer of-the-collector' },
    });
    for (const name of ['runyard_blob_written_bytes_total', 'runyard_stored_bytes', 'my-runyard'])
      expect([name, sent?.body.includes(name)]).toEqual([name, true]);
    expect(warnings).toEqual([]);
  },
);

test('the metrics text shows counters, histograms and gauges, and the number of failed attempts to read gauges', async () => {
  const metrics = await open({ isRead: true });
  metrics?.addGauges([
    () => [reading('runyard_queue_depth', { pool: 'unknown' }, 3)],
    () => Promise.reject(new Error('the database is away')),
  ]);
  count('runyard_model_requests_total', { model: 'a/model', result: 'answered' }, 2);
  observe('runyard_run_start_seconds', {}, 0.2);
  await metrics?.text();
  const text = (await metrics?.text()) ?? '';
  expect(Object.fromEntries([...readSeries(text)].filter(([name]) => !name.includes('_bucket')))).toEqual({
    'runyard_model_requests_total{model="a/model",result="answered"}': 2,
    'runyard_queue_depth{pool="other"}': 3,
    runyard_metrics_read_failures_total: 1,
    runyard_run_start_seconds_count: 1,
    runyard_run_start_seconds_sum: 0.2,
  });
  expect(text).toContain('# TYPE runyard_run_start_seconds histogram');
  expect(warnings).toHaveLength(1);
  await metrics?.close();
});

test('the gauges of the process show the delay of the event loop, the memory, and the connections of the pool', async () => {
  const { db, drop } = await createTestDatabase({ maxConnections: 2 });
  const { read, stop } = measureProcess(db);
  const clients = [await db.pool.connect(), await db.pool.connect()];
  const waiting = db.query('SELECT 1');
  const valuesNow = async () =>
    Object.fromEntries(
      (await read()).map(({ name, labels, value }) => [[name, ...Object.values(labels)].join(' '), value]),
    );
  await expect.poll(valuesNow).toMatchObject({
    'runyard_database_connections busy': 2,
    'runyard_database_connections idle': 0,
    runyard_database_connections_max: 2,
    runyard_database_waiting: 1,
    runyard_process_resident_memory_bytes: expect.toSatisfy((bytes) => bytes > 2 ** 20),
  });
  for (const client of clients) client.release();
  await waiting;
  expect(await valuesNow()).toMatchObject({
    'runyard_database_connections busy': 0,
    'runyard_database_connections idle': 2,
    runyard_database_waiting: 0,
  });
  const longestDelay = async () => (await valuesNow())['runyard_event_loop_delay_seconds 100'];
  // Node compares the times of two timers, so a timer must run before and after the loop is blocked.
  const block = async () => {
    await delay(30);
    const blockedUntil = performance.now() + 200;
    while (performance.now() < blockedUntil);
    await delay(30);
  };
  const delayOfBlocked = async () => {
    await block();
    return await longestDelay();
  };
  await expect.poll(delayOfBlocked).toBeGreaterThan(0.15);
  // A reading shows the delays since the previous reading. A busy machine also delays the loop, but rarely by so much.
  await expect.poll(longestDelay).toBeLessThan(0.15);
  stop();
  await drop();
});

test('a service that sends and shows no metrics, traces and logs loads no OpenTelemetry library', async () => {
  const { modules } = await loadedBy(
    [
      '--input-type=module',
      '-e',
      `await Promise.all(['service', 'platform/metrics/open-logs'].map((name) => import('./packages/service/src/' + name + '.ts')))`,
    ],
    {},
  );
  for (const name of ['record', 'open-logs'])
    expect(modules).toContain(`packages/service/src/platform/metrics/${name}.ts`);
  expect(modules.filter((file) => file.includes('@opentelemetry'))).toEqual([]);
}, 60_000);
