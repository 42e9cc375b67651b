import * as conventions from '@opentelemetry/semantic-conventions/incubating';
import { spanAttributes } from '@runyard/contract/metrics/trace-names';
import { afterAll, describe, expect, test, vi } from 'vitest';
import { startFakeCollector } from '../../../../../../test/fakes/collector.ts';
import { startFakeModels } from '../../../../../../test/fakes/models.ts';
import { closeAtEnd } from '../../../../../../test/support/close-at-end.ts';
import { on, testAutomations } from '../../../../test/automations.ts';
import { answerAtFixedCost, askModel, opus } from '../../../../test/budgets.ts';
import { startTestService } from '../../../../test/service.ts';
import { testWebhooks } from '../../../../test/webhooks.ts';
import { isBelow, openTraces, ratioOf } from '../../../platform/metrics/open-traces.ts';
import { makeRunTracer, rootOf, spansOfTurn } from './trace-runs.ts';

const collector = closeAtEnd(await startFakeCollector());
const fake = closeAtEnd(await startFakeModels());
const variables = {
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${collector.url}/v1/traces`,
  OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
};
for (const [name, value] of Object.entries(variables)) vi.stubEnv(name, value);
const service = await startTestService({ env: fake.env });
afterAll(async () => {
  vi.unstubAllEnvs();
});

const planted = 'planted-prompt-or-secret';
const foreign = { traceId: 'a'.repeat(32), spanId: 'b'.repeat(16) };

/** Executes a run with a request to a model and a tool call. Then stops the service, so that it sends all spans. */
async function playRun() {
  answerAtFixedCost(fake);
  const created = await service.request<{ run_id: string }>('POST', '/agent/runs', {
    body: { prompt: planted, title: planted, name: planted, metadata: { planted }, config: { model_id: opus } },
    headers: { traceparent: `00-${foreign.traceId}-${foreign.spanId}-01` },
  });
  const runId = created.body.run_id;
  const { runToken } = await service.claimRun(runId);
  const at = () => new Date().toISOString();
  const report = (events: readonly object[]) => service.report(runToken, events);
  const started = [
    { seq: 1, occurred_at: at(), type: 'agent_started', harness: 'runyard', model_id: opus },
    { seq: 2, occurred_at: at(), type: 'turn_started', step_id: 'one', prompt: planted },
  ];
  expect((await report(started)).status).toBe(200);
  await askModel(service.baseUrl, runToken, { messages: [{ role: 'user', content: planted }] });
  const action = { type: 'action', step_id: 'one', action_id: 'a', category: 'command', name: planted };
  await report([
    { seq: 3, occurred_at: at(), ...action, input: { planted } },
    { seq: 4, occurred_at: at(), type: 'action_result', action_id: 'a', state: 'failed', output: planted },
    { seq: 5, occurred_at: at(), type: 'turn_finished', step_id: 'one', summary: planted },
  ]);
  await service.ok('POST', '/harness-support/finish-task', {
    key: runToken,
    body: { success: true, summary: planted },
  });
  return runId;
}

/** Starts a run by a delivery. The setup of the run fails. */
async function failDelivery() {
  const { factory, create, send, log } = await testWebhooks(service);
  const webhook = await create();
  await testAutomations(service, factory.uid).create([on(webhook)]);
  const headers = { traceparent: `00-${foreign.traceId}-${foreign.spanId}-01` };
  expect((await send(webhook, { body: JSON.stringify({ planted }), headers })).status).toBe(202);
  const runId = (await log(webhook))[0]?.runs?.[0] ?? '';
  const { runToken: key } = await service.claimRun(runId);
  const body = { success: false, summary: planted, error: { code: 'environment_setup_failed', message: planted } };
  expect((await service.request('POST', '/harness-support/finish-task', { key, body })).status).toBe(200);
  return runId;
}

describe('the trace of a run', async () => {
  const runId = await playRun();
  const other = await service.newRun();
  const delivered = await failDelivery();
  await service.close();
  const spans = collector.spans().filter(({ traceId }) => traceId === rootOf(runId).traceId);
  const named = (name: string) => spans.find((span) => span.name.startsWith(name));

  test('has request, queue, start, turn, model call and tool call in one tree', () => {
    const root = rootOf(runId).spanId;
    const turn = named('invoke_agent');
    const tree = spans.map(({ name, parentSpanId }) => [
      name,
      parentSpanId === root ? 'root' : parentSpanId === turn?.spanId ? 'turn' : parentSpanId,
    ]);
    expect(Object.fromEntries(tree)).toEqual({
      create_run: undefined,
      queue: 'root',
      start: 'root',
      invoke_agent: 'root',
      'chat claude-opus-5-5': 'turn',
      'execute_tool command': 'turn',
    });
    expect(spans).toHaveLength(6);
    expect(named('create_run')?.spanId).toBe(root);
    for (const span of spans)
      expect(BigInt(span.endTimeUnixNano)).toBeGreaterThanOrEqual(BigInt(span.startTimeUnixNano));
  });

  test('uses the names of the OpenTelemetry semantic conventions for models and tools', () => {
    expect(named('chat')?.attributes).toMatchObject({
      'gen_ai.operation.name': 'chat',
      'gen_ai.provider.name': 'anthropic',
      'gen_ai.request.model': 'claude-opus-5-5',
      'gen_ai.usage.input_tokens': 100,
      'gen_ai.usage.output_tokens': 40,
    });
    expect(named('execute_tool')).toMatchObject({
      attributes: { 'gen_ai.tool.name': 'command', 'error.type': 'failed' },
      status: { code: 2 },
    });
    const known = new Set<unknown>(Object.values(conventions));
    const own = Object.values(spanAttributes).filter((name) => !name.startsWith('runyard.'));
    expect(own.filter((name) => !known.has(name))).toEqual([]);
  });

  test('has a link to the trace of the caller, but has a trace id of its own', () => {
    expect(named('create_run')?.links).toMatchObject([foreign]);
    expect(spans.some(({ traceId }) => traceId === foreign.traceId)).toBe(false);
    expect(collector.spans().some(({ traceId }) => traceId === rootOf(other).traceId)).toBe(true);
  });

  test('begins with the delivery that started the run, and ends with the error of a failed start', () => {
    const { traceId, spanId } = rootOf(delivered);
    const ofRun = collector.spans().filter((span) => span.traceId === traceId);
    expect(
      ofRun.map(({ name, parentSpanId, attributes, status, links }) => [
        name,
        parentSpanId,
        attributes['error.type'],
        status.code,
        links,
      ]),
    ).toEqual([
      ['create_run', undefined, undefined, 0, []],
      ['queue', spanId, undefined, 0, []],
      ['start', spanId, 'environment_setup_failed', 2, []],
    ]);
    expect(ofRun[0]?.attributes).toMatchObject({ 'runyard.run.id': delivered, 'runyard.run.source': 'WEBHOOK' });
  });

  test('contains no prompt, title, tool name, output, key or token', () => {
    const sent = collector.requests.map(({ body }) => body.toString('utf8')).join('\n');
    for (const secret of [planted, service.key, 'ryr_', fake.env.RUNYARD_ANTHROPIC_API_KEY ?? 'sk-'])
      expect([secret, sent.includes(secret)]).toEqual([secret, false]);
  });
});

describe('the spans of a turn', () => {
  const turn = {
    runId: 'r',
    executionId: 'e',
    state: 'SUCCEEDED',
    code: undefined,
    wantedMs: 1_000,
    endMs: 9_000,
  } as const;
  const execution = {
    number: 1,
    assignedMs: 2_000,
    startedMs: 3_000,
    harness: 'oz',
    modelId: opus,
    backend: 'gvisor',
    conversationId: 'c',
  };
  const failed = { state: 'ERROR', code: 'internal_error' } as const;
  const tokens = { input: 1, output: 2, cacheRead: 3, cacheWrite: 4 };
  const call = (status: number) => ({ modelId: opus, status, tokens, endMs: 5_000, durationMs: 500 });

  test.each([
    ['the first turn of an execution', {}, {}, ['queue 1000-2000', 'start 2000-3000', 'invoke_agent 3000-9000']],
    ['a follow-up turn', { wantedMs: 7_000 }, {}, ['invoke_agent 7000-9000']],
    ['a failed turn', failed, {}, ['queue 1000-2000', 'start 2000-3000', 'invoke_agent 3000-9000 internal_error']],
    ['a start that failed', failed, { startedMs: null }, ['queue 1000-2000', 'start 2000-9000 internal_error']],
    [
      'a start that was cancelled',
      { state: 'CANCELLED' as const },
      { startedMs: null },
      ['queue 1000-2000', 'start 2000-9000'],
    ],
    [
      'a run that no worker took',
      failed,
      { startedMs: null, assignedMs: null, backend: null },
      ['queue 1000-9000 internal_error'],
    ],
  ])('of %s', (_, change, of, expected) => {
    const spans = spansOfTurn({ ...turn, ...change }, { ...execution, ...of }, [], []);
    const shown = spans.map(({ name, startMs, endMs, isFailed, attributes: { errorType } }) => {
      expect([name, Boolean(isFailed)]).toEqual([name, errorType !== undefined]);
      return `${name} ${startMs}-${endMs}${isFailed ? ` ${errorType}` : ''}`;
    });
    expect(shown).toEqual(expected);
  });

  test.each([
    [200, undefined],
    [429, '429'],
    [502, '502'],
  ])('contain a model call with the status %i, with the error type %s', (status, errorType) => {
    const calls = spansOfTurn(turn, execution, [call(status)], []).at(-1)?.children;
    expect(calls).toMatchObject([
      { name: 'chat claude-opus-5-5', startMs: 4_500, endMs: 5_000, attributes: { inputTokens: 8, outputTokens: 2 } },
    ]);
    expect([calls?.[0]?.isFailed, calls?.[0]?.attributes.errorType]).toEqual([errorType && true, errorType]);
  });
});

describe('the flags of a foreign trace', () => {
  /** Creates two runs in a tracer: one that the ratio samples, and one that it does not sample. Returns the names of the sent traces. */
  const sentWith = async (ratio: number, flags: string) => {
    const env = {
      ...variables,
      OTEL_TRACES_SAMPLER: 'parentbased_traceidratio',
      OTEL_TRACES_SAMPLER_ARG: String(ratio),
    };
    const traces = await openTraces(env, service.deps.log);
    if (!traces) throw new Error('traces are off');
    const tracer = makeRunTracer({ db: service.deps.db, traces, log: service.deps.log });
    const ids = Array.from({ length: 2_000 }, (_, index) => `${flags} ${ratio} ${index}`);
    const runs = [true, false].map((wanted) => ids.find((id) => isBelow(rootOf(id).traceId, 0.01) === wanted) ?? '');
    // The random part of this foreign trace id is 0, so a sampler that obeyed the id would sample each trace.
    const traceparent = `00-${'a'.repeat(16)}${'0'.repeat(16)}-${foreign.spanId}-${flags}`;
    for (const id of runs) tracer.created({ id, source: 'API', request: { receivedMs: Date.now(), traceparent } });
    await tracer.close();
    await traces.close();
    const links = runs.map((id) => collector.spans().find(({ traceId }) => traceId === rootOf(id).traceId)?.links);
    return links.map((each) => each?.map(({ spanId }) => spanId));
  };

  test('do not make an unsampled run sampled', async () => {
    expect(await sentWith(0.01, '01')).toEqual([[foreign.spanId], undefined]);
  });

  test('do not make a sampled run unsampled, and the trace has the link', async () => {
    expect(await sentWith(1, '00')).toEqual([[foreign.spanId], [foreign.spanId]]);
  });
});

test.each([
  [{}, 1],
  [{ OTEL_TRACES_SAMPLER: 'always_off' }, 0],
  [{ OTEL_TRACES_SAMPLER: 'parentbased_traceidratio', OTEL_TRACES_SAMPLER_ARG: '0.01' }, 0.01],
  [{ OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: 'x' }, 1],
])('with the environment variables %j, the service samples the share %d of all traces', (env, ratio) => {
  expect(ratioOf(env)).toBe(ratio);
});

test('the service samples about the share of traces that the ratio sets, and decides by the trace id that it computed itself', () => {
  const ids = Array.from({ length: 20_000 }, (_, index) => rootOf(String(index)).traceId);
  const sampled = ids.filter((id) => isBelow(id, 0.01)).length;
  expect(sampled).toBeGreaterThan(120);
  expect(sampled).toBeLessThan(280);
  expect([ids.filter((id) => isBelow(id, 1)).length, ids.filter((id) => isBelow(id, 0)).length]).toEqual([20_000, 0]);
});
