import { afterEach, expect, test, vi } from 'vitest';
import { startFakeCollector } from '../../../../../test/fakes/collector.ts';
import { closeAtEnd } from '../../../../../test/support/close-at-end.ts';
import { openLogs } from './open-logs.ts';

const collector = closeAtEnd(await startFakeCollector());
afterEach(() => vi.unstubAllEnvs());

const warn = vi.fn();
const place = { traceId: 'a'.repeat(32), spanId: 'b'.repeat(16) };

const open = async (env: Record<string, string>) => {
  for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value);
  return await openLogs(process.env, { warn }, ({ run_id }) => (run_id === undefined ? undefined : place));
};
const on = { OTEL_LOGS_EXPORTER: 'otlp', OTEL_EXPORTER_OTLP_ENDPOINT: collector.url };
const lineOf = (line: object) => JSON.stringify({ level: 30, time: 1_700_000_000_123, ...line });

test.each([
  ['only an endpoint is set', { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url }],
  ['the exporter is none', { ...on, OTEL_LOGS_EXPORTER: 'none' }],
  ['no endpoint is set', { OTEL_LOGS_EXPORTER: 'otlp' }],
  ['the SDK is disabled', { ...on, OTEL_SDK_DISABLED: 'true' }],
])('the log is not sent if %s', async (_, env) => {
  expect(await open(env)).toBeUndefined();
});

test('a line is sent with its time, severity, message, fields and the trace of its run', async () => {
  const logs = await open({ ...on, OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json', OTEL_TRACES_SAMPLER: 'always_off' });
  logs?.write(lineOf({ level: 50, run_id: 'r', err: { type: 'Error', message: 'away' }, msg: 'it failed' }));
  logs?.write(lineOf({ level: 20, status: 200, msg: 'request' }));
  logs?.write(lineOf({ otel: 'the collector is away', msg: 'OpenTelemetry reports a problem' }));
  await logs?.close();
  expect(collector.logs()).toMatchObject([
    {
      timeUnixNano: '1700000000123000000',
      severityNumber: 17,
      severityText: 'ERROR',
      body: { stringValue: 'it failed' },
      ...place,
      flags: 0,
      attributes: { run_id: 'r' },
    },
    { severityNumber: 5, severityText: 'DEBUG', body: { stringValue: 'request' }, attributes: { status: 200 } },
  ]);
  expect(collector.logs()).toHaveLength(2);
  expect(collector.logs()[1]?.traceId).toBeFalsy();
  expect(JSON.stringify(collector.logs()[0]?.attributes)).toContain('away');
});

test('the message and the texts of a line are cut before they are sent', async () => {
  const logs = await open({ ...on, OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json' });
  const long = 'x'.repeat(20_000);
  logs?.write(lineOf({ msg: long, reason: long, err: { stack: long } }));
  await logs?.close();
  const cut = collector.logs().at(-1);
  expect(cut?.body.stringValue).toHaveLength(8_192);
  expect(cut?.attributes.reason).toHaveLength(8_192);
  expect(JSON.stringify(cut).length).toBeLessThan(3 * 8_192 + 1_000);
});

test('the log is sent as protobuf by default', async () => {
  const logs = await open(on);
  logs?.write(lineOf({ msg: 'binary' }));
  await logs?.close();
  expect(collector.requests.at(-1)).toMatchObject({
    path: '/v1/logs',
    headers: { 'content-type': 'application/x-protobuf' },
  });
});

test('an unreachable collector does not delay the end for long', async () => {
  const logs = await open({ ...on, OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9' });
  for (let sent = 0; sent < 3_000; sent += 1) logs?.write(lineOf({ msg: 'lost' }));
  const startedAt = performance.now();
  await logs?.close(100);
  expect(performance.now() - startedAt).toBeLessThan(4_000);
});

test('a wrong endpoint is reported', async () => {
  const logs = await open({ ...on, OTEL_EXPORTER_OTLP_ENDPOINT: 'no address' });
  expect(warn).toHaveBeenCalledWith({ otel: expect.stringContaining('no address') }, expect.any(String));
  await logs?.close();
});
