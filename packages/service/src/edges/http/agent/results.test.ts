import { expect, test } from 'vitest';
import { testChildRuns } from '../../../../test/child-runs.ts';
import { testEventSubscriptions } from '../../../../test/event-subscriptions.ts';
import { connectMcp } from '../../../../test/mcp.ts';
import { openTestService } from '../../../../test/service.ts';

const service = await openTestService();

const schema = {
  type: 'object',
  properties: { severity: { enum: ['low', 'high'] }, note: { type: 'string' } },
  required: ['severity'],
};

/** Starts a run whose agent has begun to work. */
async function startRun(config: object = { output_schema: schema }) {
  const execution = await service.startExecution({ config });
  const event = { seq: 1, occurred_at: new Date().toISOString(), harness: 'oz', model_id: 'runbook' };
  const body = { events: [{ ...event, type: 'agent_started' }] };
  await service.request('POST', '/harness-support/events', { key: execution.runToken, body });
  return execution;
}
type Started = Awaited<ReturnType<typeof startRun>>;

const submit = ({ runToken }: Pick<Started, 'runToken'>, result: unknown, turn = 1) =>
  service.request('POST', '/harness-support/result', { key: runToken, body: { turn, result } });
const finish = ({ runToken }: Started, more: object = {}) =>
  service.request('POST', '/harness-support/finish-task', {
    key: runToken,
    body: { turn: 1, success: true, summary: 'Done.', ...more },
  });
const read = async ({ runId }: Started) => await service.ok('GET', `/agent/runs/${runId}`);

test('the result of a turn is served when the turn has ended, together with the last message', async () => {
  const run = await startRun();
  expect((await submit(run, { severity: 'none' })).body).toEqual({
    accepted: false,
    faults: [{ path: '/severity', message: expect.stringContaining('["low","high"]') }],
  });
  expect((await submit(run, { severity: 'high', note: null })).body).toMatchObject({ accepted: false });
  expect((await submit(run, { severity: 'high' })).body).toEqual({ accepted: true });
  expect(await read(run)).not.toHaveProperty('result');
  await finish(run);
  expect(await read(run)).toMatchObject({
    state: 'SUCCEEDED',
    result: { severity: 'high' },
    final_message: 'Done.',
  });
});

test('each turn needs its own result: a later turn without a result fails the run and removes the earlier result', async () => {
  const run = await startRun();
  await submit(run, { severity: 'low' });
  await finish(run);
  const sent = await service.request<{ followup_id: string }>('POST', `/agent/runs/${run.runId}/followups`, {
    body: { message: 'more' },
  });
  const taken = { seq: 2, occurred_at: new Date().toISOString(), follow_up_id: sent.body.followup_id };
  const body = { events: [{ ...taken, type: 'follow_up_taken' }] };
  await service.request('POST', '/harness-support/events', { key: run.runToken, body });
  await finish(run, { turn: 2, summary: 'More.' });
  const item = await read(run);
  expect(item).toMatchObject({
    state: 'FAILED',
    final_message: 'More.',
    status_message: { error_code: 'result_invalid', retryable: false },
  });
  expect(item).not.toHaveProperty('result');
});

test('a value that was submitted for another turn is not the result of this turn', async () => {
  const run = await startRun();
  await submit(run, { severity: 'low' }, 2);
  await finish(run);
  expect(await read(run)).toMatchObject({ state: 'FAILED', status_message: { error_code: 'result_invalid' } });
});

test('a turn with the mode plan needs no result, and an agent cannot claim that a person interrupted its turn', async () => {
  const execution = await service.startExecution({ mode: 'plan', config: { output_schema: schema } });
  await finish(execution);
  const planned = await startRun();
  await finish(planned, { interrupted: true });
  expect(await read(planned)).toMatchObject({ state: 'FAILED', status_message: { error_code: 'result_invalid' } });
});

test('secrets never get into a result', async () => {
  const run = await startRun({ output_schema: {} });
  await submit(run, { token: `it is ${run.runToken}`, [`${run.runToken}`]: 1 });
  await finish(run);
  const item = await read(run);
  expect(JSON.stringify(item)).not.toContain(run.runToken);
  expect(Object.keys((item as { result: object }).result)).toHaveLength(2);
});

test('a result that is null, false or markup is served as it is', async () => {
  for (const value of [null, false, '<script>alert(1)</script>']) {
    const run = await startRun({ output_schema: {} });
    await submit(run, value);
    await finish(run);
    expect((await read(run)) as { result: unknown }).toHaveProperty('result', value);
  }
});

test('a result without an output schema, a large result and an artifact of another run are refused', async () => {
  const plain = await startRun({});
  expect((await submit(plain, 1)).status).toBe(400);
  const run = await startRun({ output_schema: {} });
  expect((await submit(run, 'x'.repeat(256 * 1024))).status).toBe(413);
  const data = { filename: 'r.json', filepath: 'r.json', mime_type: 'application/json' };
  const reported = await service.request<{ artifact_uid: string }>('POST', '/harness-support/report-artifact', {
    key: plain.runToken,
    body: { artifact_type: 'FILE', data },
  });
  const body = { turn: 1, result_artifact_uid: reported.body.artifact_uid };
  expect((await service.request('POST', '/harness-support/result', { key: run.runToken, body })).status).toBe(404);
  expect((await service.request('POST', '/harness-support/result', { body: { turn: 1, result: 1 } })).status).toBe(401);
});

test.each([
  ['that refers to another document', { $ref: 'https://example.com/schema.json' }],
  ['that refers to another document below properties', { properties: { a: { $dynamicRef: 'other.json' } } }],
  ['with an $id', { $id: 'https://example.com/x' }],
  ['of another dialect', { $schema: 'http://json-schema.org/draft-07/schema#' }],
  ['that is too large', { description: 'x'.repeat(64 * 1024) }],
  ['that is no schema', { type: 'strin' }],
])('an output schema %s is refused at the create', async (_, output_schema) => {
  const answer = await service.request('POST', '/agent/runs', { body: { prompt: 'x', config: { output_schema } } });
  expect(answer.status, answer.text).toBe(400);
  expect(answer.body).toMatchObject({ errors: [{ path: 'config.output_schema' }] });
});

test('names of members that are keywords of references are allowed', async () => {
  const output_schema = { properties: { $ref: { type: 'string' }, $id: { const: { $ref: 'x' } } } };
  await service.ok('POST', '/agent/runs', { body: { prompt: 'x', config: { output_schema } } });
});

test('subscribers, MCP clients and the run above get the result', async () => {
  const subscription = await testEventSubscriptions(service).create({ events: ['run.ended'] });
  const run = await startRun();
  await submit(run, { severity: 'low', note: '' });
  await finish(run);
  const [delivery] = await service.deps.db.query<{ data: object }>(
    'SELECT data FROM event_deliveries WHERE subscription_id = $1 AND data->>$2 = $3',
    [subscription.id, 'run_id', run.runId],
  );
  expect(delivery?.data).toMatchObject({ state: 'SUCCEEDED', result: { severity: 'low', note: '' } });
  const { client } = await connectMcp(`${service.baseUrl}/mcp`, service.key);
  const answer = await client.callTool({ name: 'get_run', arguments: { run_id: run.runId } });
  expect(answer.structuredContent).toMatchObject({
    run_id: run.runId,
    state: 'SUCCEEDED',
    final_message: 'Done.',
    result: { severity: 'low', note: '' },
  });
  await client.close();
});

test('a child run returns its own result to its parent, and does not inherit the schema of the parent', async () => {
  const { orchestrator, startChild, begin } = testChildRuns(service);
  const { runToken: key } = await orchestrator({ config: { output_schema: schema } });
  const plain = await startChild(key);
  expect(JSON.stringify(await service.ok('GET', `/agent/runs/${plain}`))).not.toContain('output_schema');
  const typed = await begin(await startChild(key, { config: { output_schema: { type: 'number' } } }));
  await submit(typed, 42);
  await service.request('POST', '/harness-support/finish-task', {
    key: typed.runToken,
    body: { turn: 1, success: true, summary: 'It is 42.' },
  });
  const body = await service.ok('GET', `/harness-support/child-runs/${typed.runId}`, { key });
  expect(body).toMatchObject({ state: 'SUCCEEDED', result: 42 });
});

test('the runs of an agent identity have its output schema, unless they name their own', async () => {
  const body = {
    prompt: 'x',
    agent_identity_uid: (
      await service.ok<{ uid: string }>('POST', '/agent/identities', {
        body: { name: 'Triage', output_schema: schema },
      })
    ).uid,
  };
  const { run_id } = await service.ok<{ run_id: string }>('POST', '/agent/runs', { body });
  expect(await service.ok('GET', `/agent/runs/${run_id}`)).toMatchObject({
    agent_config: { output_schema: schema },
  });
  const wrong = { name: 'Wrong', output_schema: { type: 'strin' } };
  const refused = await service.request('POST', '/agent/identities', { body: wrong });
  expect(refused.body).toMatchObject({ status: 400, errors: [{ path: 'output_schema' }] });
});

const checks = [
  { name: 'tests', command: 'npm test' },
  { name: 'report', artifact: 'report.txt' },
];

test('the runs of an agent identity have its checks, unless they name their own', async () => {
  const identity = await service.request<{ uid: string }>('POST', '/agent/identities', {
    body: { name: 'Checked', checks, check_attempts: 1 },
  });
  expect(identity.body).toMatchObject({ checks, check_attempts: 1 });
  const configOf = async (config?: object) => {
    const body = { prompt: 'x', agent_identity_uid: identity.body.uid, ...(config ? { config } : {}) };
    const { run_id } = await service.ok<{ run_id: string }>('POST', '/agent/runs', { body });
    return (await service.ok<{ agent_config: object }>('GET', `/agent/runs/${run_id}`)).agent_config;
  };
  expect(await configOf()).toMatchObject({ checks, check_attempts: 1 });
  const own = [{ name: 'own', command: 'true' }];
  expect(await configOf({ checks: own })).toMatchObject({ checks: own });
  const path = `/agent/identities/${identity.body.uid}`;
  const emptied = await service.request('PUT', path, { body: { name: 'Checked', checks: [] } });
  expect(emptied.body).not.toHaveProperty('checks');
  expect(await configOf()).not.toHaveProperty('checks');
});

test('a run with checks succeeds only if its agent reports that each of them passed', async () => {
  for (const [reported, state] of [
    [undefined, 'FAILED'],
    [[{ name: 'tests', passed: true }], 'FAILED'],
    [
      [
        { name: 'tests', passed: true },
        { name: 'report', passed: false },
      ],
      'FAILED',
    ],
    [
      [
        { name: 'tests', passed: true },
        { name: 'report', passed: true },
      ],
      'SUCCEEDED',
    ],
  ] as const) {
    const run = await startRun({ checks });
    await finish(run, reported ? { checks: reported } : {});
    const item = await read(run);
    expect(item).toMatchObject({ state });
    if (state === 'FAILED') expect(item).toMatchObject({ status_message: { error_code: 'checks_failed' } });
  }
});

test('the timeline has the checks, without secrets, and an agent sees only the artifacts of its own run', async () => {
  const run = await startRun({ checks });
  const event = { occurred_at: new Date().toISOString(), check_id: 'c1', name: 'tests', attempt: 1 };
  const output_tail = `the token is ${run.runToken}`;
  const events = [
    { ...event, seq: 2, type: 'check_started' },
    {
      ...event,
      seq: 3,
      type: 'check_finished',
      state: 'failed',
      duration_ms: 5,
      exit_code: 1,
      output_tail,
      error: 'no',
    },
  ];
  await service.report(run.runToken, events);
  const timeline = await service.request('GET', `/agent/runs/${run.runId}/timeline`);
  expect(timeline.text).not.toContain(run.runToken);
  expect(timeline.body).toMatchObject({
    events: expect.arrayContaining([
      expect.objectContaining({
        event_type: 'check_finished',
        payload: expect.objectContaining({ name: 'tests', exit_code: 1 }),
      }),
    ]),
  });
  const other = await startRun({});
  const data = { url: 'https://example.com/pr/1', branch: 'b' };
  await service.request('POST', '/harness-support/report-artifact', {
    key: other.runToken,
    body: { artifact_type: 'PULL_REQUEST', data },
  });
  const listed = async (key: string) => await service.ok('GET', '/harness-support/artifacts', { key });
  expect(await listed(run.runToken)).toEqual({ artifacts: [] });
  expect(await listed(other.runToken)).toMatchObject({ artifacts: [{ artifact_type: 'PULL_REQUEST' }] });
});

test.each([
  ['in a fresh sandbox', { command: 'true', fresh: true }, 'config.checks.0.fresh'],
  ['with trusted paths', { command: 'true', trusted_paths: ['test'] }, 'config.checks.0.trusted_paths'],
  ['of two kinds', { command: 'true', artifact: 'a' }, 'config.checks.0'],
  ['of no kind', {}, 'config.checks.0'],
  ['without limits', { diff: {} }, 'config.checks.0.diff'],
])('a check %s is refused at the create', async (_, check, path) => {
  const config = { checks: [{ name: 'a', ...check }] };
  const answer = await service.request('POST', '/agent/runs', { body: { prompt: 'x', config } });
  expect(answer.status, answer.text).toBe(400);
  expect(answer.body).toMatchObject({ errors: [{ path }] });
});
