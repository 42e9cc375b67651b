/**
 * Reads the metrics of a real service, and compares them with the alert rules and the dashboard of `deploy/`. Checks metrics, rules
 * and dashboard with promtool.
 */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { metricsTable } from '@runyard/contract/metrics/metrics-table';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { newRawKey } from '../packages/service/src/team/access/keys/key.ts';
import { createTestDatabase, type TestDatabase } from '../packages/service/test/database.ts';
import { assignedRun } from '../packages/service/test/process.ts';
import { isOnPath } from './checks/system-packages.ts';
import { startFakeCollector } from './fakes/collector.ts';
import { freePort } from './support/free-port.ts';
import { type Prometheus, startPrometheus } from './support/prometheus.ts';
import { type OneService, startService } from './support/service-process.ts';
import { eventually } from './support/system.ts';

const root = path.resolve(import.meta.dirname, '..');
const read = (name: string): string => readFileSync(path.join(root, 'deploy', name), 'utf8');
const key = newRawKey();

let database: TestDatabase;
const services: OneService[] = [];
const token = 'token-of-the-metrics';
const modelKey = 'sk-ant-planted-secret-of-the-operator';
let collector: Awaited<ReturnType<typeof startFakeCollector>>;
let places: number[] = [];
let texts: string[] = [];
const noPrometheus = isOnPath('prometheus') ? null : 'no prometheus: install the package prometheus';
let prometheus: Prometheus;
beforeAll(async () => {
  database = await createTestDatabase();
  places = await Promise.all([freePort(), freePort()]);
  // A new Prometheus waits 5 seconds before its first scrape, so start it before the services.
  if (!noPrometheus) prometheus = await startPrometheus(places[0] ?? 0, token);
  collector = await startFakeCollector();
  const sending = {
    OTEL_LOGS_EXPORTER: 'otlp',
    OTEL_EXPORTER_OTLP_LOGS_ENDPOINT: `${collector.url}/v1/logs`,
    OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${collector.url}/v1/traces`,
    OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
    OTEL_BLRP_SCHEDULE_DELAY: '100',
    OTEL_BSP_SCHEDULE_DELAY: '100',
    RUNYARD_ANTHROPIC_API_KEY: modelKey,
  };
  for (const [index, port] of places.entries()) {
    const env = {
      ...(index === 1 ? sending : {}),
      RUNYARD_METRICS_LISTEN: `127.0.0.1:${port}`,
      RUNYARD_METRICS_TOKEN: token,
    };
    services.push(await startService({ databaseUrl: database.url, key, env }));
  }
  const create = await fetch(`${services[0]?.origin}/api/v1/agent/runs`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ prompt: 'Do it' }),
  });
  expect(create.status).toBe(200);
  const headers = { authorization: `Bearer ${token}` };
  /** Returns the metrics when the gauges include the new run. Prometheus may have read the gauges before, and readings are shared for 5 s. */
  const scrape = async (port: number) => {
    const text = await (await fetch(`http://127.0.0.1:${port}/metrics`, { headers })).text();
    return /^runyard_queue_depth{pool="hosted"} 1$/m.test(text) && /^runyard_stored_bytes [1-9]/m.test(text) && text;
  };
  texts = await Promise.all(places.map((port) => eventually('the run in the metrics', () => scrape(port))));
}, 180_000);
afterAll(async () => {
  await Promise.all(services.map((service) => service.stop()));
  await database.drop();
  await collector.close();
  if (!noPrometheus) await prometheus.stop();
});

interface Dashboard {
  readonly panels: readonly { readonly title: string; readonly targets?: readonly { readonly expr: string }[] }[];
}

const expressions = (): { readonly of: string; readonly expr: string }[] => {
  const rules = [...read('prometheus/alerts.yaml').matchAll(/- alert: (\w+)\n +expr: (.+)/g)];
  const dashboard: Dashboard = JSON.parse(read('grafana/runyard.json'));
  return [
    ...rules.map(([, of = '', expr = '']) => ({ of, expr })),
    ...dashboard.panels.flatMap(({ title, targets = [] }) => targets.map(({ expr }) => ({ of: title, expr }))),
  ];
};

const names = new Set(
  Object.entries(metricsTable).flatMap(([name, { kind }]) =>
    kind === 'histogram' ? [`${name}_bucket`, `${name}_sum`, `${name}_count`] : [name],
  ),
);

test('the alert rules and the dashboard use only metrics, labels and values that the table of metrics contains', () => {
  const faults = expressions().flatMap(({ of, expr }) => {
    const used = [...expr.matchAll(/\b(runyard_\w+)(?:\{([^}]*)\})?/g)];
    return used.flatMap(([, name = '', matchers = '']) => {
      if (!names.has(name)) return [`${of}: ${name} is no metric`];
      const metric = Object.entries(metricsTable).find(
        ([each]) => name.replace(/_(bucket|sum|count)$/, '') === each || name === each,
      );
      const labels: Readonly<Record<string, { readonly values: unknown }>> = metric?.[1].labels ?? {};
      return [...matchers.matchAll(/(\w+)=~?"([^"]*)"/g)].flatMap(([, label = '', values = '']) => {
        const known = labels[label]?.values;
        if (known === undefined) return [`${of}: ${name} has no label ${label}`];
        return values.split('|').filter((value) => Array.isArray(known) && !known.includes(value));
      });
    });
  });
  expect(faults).toEqual([]);
  expect(expressions().length).toBeGreaterThan(50);
});

test('the dashboard of `deploy/` shows every metric', () => {
  const shown = expressions()
    .map(({ expr }) => expr)
    .join('\n');
  const missing = Object.keys(metricsTable).filter((name) => !shown.includes(name));
  expect(missing).toEqual([]);
});

test('two processes report the same values for gauges that they read from the database, and each reports its own counters', () => {
  const linesOf = (text = '', pattern: RegExp) => text.split('\n').filter((line) => pattern.test(line));
  const [first, second] = texts;
  const ofDatabase = /^runyard_(queue_depth|workers|worker_slots|executions|stored_bytes)/;
  expect(linesOf(first, ofDatabase)).toEqual(linesOf(second, ofDatabase));
  expect(first).toContain('runyard_queue_depth{pool="hosted"} 1');
  const created = 'runyard_run_transitions_total{state="QUEUED"} 1';
  expect([first?.includes(created), second?.includes(created)]).toEqual([true, false]);
});

test('a line of the log about a run is sent by OTLP with the trace id of the run, without prompts and secrets', async () => {
  const planted = 'planted-prompt';
  const origin = services[1]?.origin ?? '';
  const post = (place: string, authorization: string, body: object) =>
    fetch(`${origin}/api/v1/${place}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${authorization}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
  const newRun = (body: object) => post('agent/runs', key, { prompt: planted, title: planted, ...body });
  const { runId, runToken, say, close } = await assignedRun(origin, key, newRun);
  await say('task_claimed', { worker_id: 'box' });
  const messages = [{ role: 'user', content: planted }];
  const refused = await post('gateway/anthropic/v1/messages', runToken, {
    model: 'no-such-model',
    max_tokens: 9,
    messages,
  });
  expect(refused.status).toBeGreaterThanOrEqual(400);
  const lines = () => collector.logs().filter(({ attributes }) => attributes.run_id === runId);
  await expect.poll(lines, { timeout: 60_000 }).not.toEqual([]);
  const spans = () => collector.spans().filter(({ attributes }) => attributes['runyard.run.id'] === runId);
  await expect.poll(spans, { timeout: 60_000 }).not.toEqual([]);
  expect(lines()[0]).toMatchObject({
    body: { stringValue: 'model request refused' },
    traceId: spans()[0]?.traceId,
    attributes: { program: 'service', trace_id: spans()[0]?.traceId },
  });
  const sent = collector.requests.map(({ body }) => body.toString('utf8')).join('\n');
  for (const secret of [planted, modelKey, key, runToken])
    expect([secret, sent.includes(secret)]).toEqual([secret, false]);
  close();
});

const noPromtool = isOnPath('promtool') ? null : 'no promtool: install the package prometheus';
describe.skipIf(noPromtool)(`promtool${noPromtool ? ` (skipped: ${noPromtool})` : ''}`, () => {
  const promtool = (args: readonly string[], input = '') => {
    const { status, stdout, stderr } = spawnSync('promtool', args, { input, encoding: 'utf8' });
    return { status, output: stdout + stderr };
  };

  test('finds no fault in the metrics of a service', () => {
    for (const text of texts) expect(promtool(['check', 'metrics'], text)).toEqual({ status: 0, output: '' });
  });

  test('accepts the alert rules', () => {
    expect(promtool(['check', 'rules', path.join(root, 'deploy/prometheus/alerts.yaml')])).toMatchObject({ status: 0 });
  });

  test('fires each alert in its case, and fires no alert for an idle service', () => {
    const tests = path.join(root, 'deploy/prometheus/alerts.test.yaml');
    expect(promtool(['test', 'rules', tests])).toMatchObject({ status: 0 });
    const firing = [...read('prometheus/alerts.test.yaml').matchAll(/alertname: (\w+)\n +exp_alerts:\n/g)];
    const alerts = [...read('prometheus/alerts.yaml').matchAll(/alert: (\w+)/g)].map(([, name]) => name);
    expect(new Set(firing.map(([, name]) => name))).toEqual(new Set(alerts));
  });

  test('accepts every expression of the dashboard', () => {
    const rules = expressions().map(({ expr }, index) => ({
      record: `expression:${index}`,
      expr: expr.replaceAll('$__rate_interval', '1m'),
    }));
    // promtool must open /dev/stdin. This is not possible with a socket, which Node gives to a child as standard input, so use a pipe.
    const words = ['-c', 'cat | promtool check rules --lint=none /dev/stdin'];
    const input = JSON.stringify({ groups: [{ name: 'dashboard', rules }] });
    const checked = spawnSync('sh', words, { input, encoding: 'utf8' });
    expect(checked).toMatchObject({ status: 0 });
  });
});

describe.skipIf(noPrometheus)(`a Prometheus that scrapes${noPrometheus ? ` (skipped: ${noPrometheus})` : ''}`, () => {
  let stored: string[];
  beforeAll(async () => {
    await eventually('two scrapes', async () => (await sampleOf('sum_over_time(up{job="runyard"}[1m])')) >= 2);
    stored = await prometheus.ask<string[]>('label/__name__/values');
  }, 90_000);

  interface Samples {
    readonly result: readonly { readonly value: readonly [number, string] }[];
  }
  const query = (expr: string) =>
    prometheus.ask<Samples>('query', { query: expr.replaceAll('$__rate_interval', '1m') });
  const sampleOf = async (expr: string) => Number((await query(expr)).result[0]?.value[1] ?? 0);

  test('reads the metrics with the documented configuration and the token', async () => {
    expect(await sampleOf('up{job="runyard"}')).toBe(1);
    expect(stored.filter((name) => name.startsWith('runyard_') && !names.has(name))).toEqual([]);
  });

  test('evaluates every alert rule without an error, and fires none', async () => {
    interface Rules {
      readonly groups: readonly { readonly rules: readonly { name: string; health: string; state: string }[] }[];
    }
    const rules = async () => (await prometheus.ask<Rules>('rules')).groups.flatMap((group) => group.rules);
    await expect
      .poll(async () => (await rules()).map(({ health }) => health), { timeout: 60_000 })
      .not.toContain('unknown');
    const shown = (await rules()).map(({ name, health, state }) => [name, health, state === 'firing']);
    expect(shown).toEqual(shown.map(([name]) => [name, 'ok', false]));
    expect(shown.length).toBe(read('prometheus/alerts.yaml').match(/- alert:/g)?.length);
  });

  test('answers every expression of the rules and the dashboard, and has a series for each gauge that they use', async () => {
    for (const { expr } of expressions()) await query(expr);
    const gauges = Object.entries(metricsTable).filter(([, { kind }]) => kind === 'gauge' || kind === 'database');
    // These gauges have no series while no execution is assigned, no worker is connected, and before the first backup.
    const mayBeAbsent = ['runyard_executions', 'runyard_worker_free_bytes', 'runyard_backup_age_seconds'];
    const used = expressions()
      .map(({ expr }) => expr)
      .join('\n');
    const missing = gauges.filter(([name]) => used.includes(name) && !stored.includes(name)).map(([name]) => name);
    expect(missing.filter((name) => !mayBeAbsent.includes(name))).toEqual([]);
  });
});
