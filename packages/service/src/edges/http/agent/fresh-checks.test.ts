import { expect, test } from 'vitest';
import { openTestService } from '../../../../test/service.ts';
import { gatewayPathOf } from '../../../team/environments/git-path.ts';

const service = await openTestService();
const at = '2026-01-02T03:04:05.000Z';
const commit = 'a'.repeat(40);

const environment = async (config: object = {}): Promise<string> => {
  const whole = { name: 'E', github_repos: [{ owner: 'acme', repo: 'sum' }], ...config };
  return (await service.ok<{ uid: string }>('POST', '/agent/environments', { body: { config: whole } })).uid;
};
const connect = async (name: string, sandbox: object | null, teamId: string | null = service.teamId) =>
  await service.deps.db.query(
    `INSERT INTO worker_connections (id, service_instance_id, worker_id, team_id, slots, sandbox) VALUES (gen_random_uuid(), gen_random_uuid(), $1, $2, 1, $3)`,
    [name, teamId, sandbox],
  );
const closed = { backend: 'bubblewrap', features: ['host-rules', 'no-network'], missing: [] };
await connect('runyard-closed', closed, null);
const environmentId = await environment();
const check = { name: 'tests', command: 'sh run-tests', fresh: true, trusted_paths: ['test'] };
type Started = Awaited<ReturnType<typeof service.startExecution>>;

const events = ({ runToken }: Pick<Started, 'runToken'>, ...given: object[]) => service.report(runToken, given);
const agentStarted = (seq = 1, more: object = {}) => ({
  seq,
  occurred_at: at,
  type: 'agent_started',
  harness: 'oz',
  model_id: 'runbook',
  ...more,
});
const bases = { base_commits: [{ path: 'sum', commit }] };
const snapshot = ({ runToken }: Started, turn = 1) =>
  service.request('POST', '/harness-support/upload-snapshot', { key: runToken, body: { turn, files: [] } });

/** Starts a run with a check in a fresh sandbox, whose agent has begun and has stored the changes of its turn. */
async function startRun(more: object = {}): Promise<Started> {
  const config = { environment_id: environmentId, checks: [check], ...more };
  const execution = await service.startExecution({ config });
  await events(execution, agentStarted(1, bases));
  await snapshot(execution);
  return execution;
}
const ask = (run: Started, attempt = 1, name = 'tests') =>
  service.request<{ check_run_id: string; detail: string }>('POST', '/harness-support/fresh-checks', {
    key: run.runToken,
    body: { turn: 1, attempt, name },
  });
const outcome = async (run: Started, id: string) =>
  await service.ok('GET', `/harness-support/fresh-checks/${id}`, { key: run.runToken });
const finish = ({ runToken }: Pick<Started, 'runToken'>, body: object) =>
  service.request('POST', '/harness-support/finish-task', { key: runToken, body: { turn: 1, summary: '', ...body } });
const claim = { success: true, checks: [{ name: 'tests', passed: true }] };
const stateOf = async (runId: string) =>
  await service.ok<{ state: string; status_message?: object }>('GET', `/agent/runs/${runId}`);

test('a run succeeds only if the run of its check has passed, even if its own agent reports a pass', async () => {
  const forged = await startRun();
  await finish(forged, claim);
  expect(await stateOf(forged.runId)).toMatchObject({
    state: 'FAILED',
    status_message: { error_code: 'checks_failed' },
  });

  const early = await startRun();
  const { check_run_id: running } = (await ask(early)).body;
  expect(await outcome(early, running)).toEqual({ state: 'running' });
  await finish(early, claim);
  expect((await stateOf(early.runId)).state).toBe('FAILED');

  const honest = await startRun();
  const { check_run_id: id } = (await ask(honest)).body;
  const checking = await service.claimRun(id);
  await events(checking, agentStarted());
  await finish(checking, { success: true, checks: [{ name: 'tests', passed: true }] });
  expect(await outcome(honest, id)).toMatchObject({ state: 'passed' });
  const endless = `/harness-support/fresh-checks/${id}?wait_ms=60001`;
  await service.problem(400, 'GET', endless, { key: honest.runToken });
  await finish(honest, claim);
  expect((await stateOf(honest.runId)).state).toBe('SUCCEEDED');
});

test('the run of a check has the head of the checked run, so a check of a fork prepares no workspace for other runs', async () => {
  const run = await startRun();
  const checkout = { owner: 'acme', repo: 'sum', number: 7, commit, is_fork: true };
  await service.deps.db.query('UPDATE run_requests SET checkout = $2 WHERE run_id = $1', [run.runId, checkout]);
  const { check_run_id: id } = (await ask(run)).body;
  const rows = await service.deps.db.query('SELECT checkout FROM run_requests WHERE run_id = $1', [id]);
  expect(rows).toEqual([{ checkout }]);
});

test('each turn needs its own check, also after a follow-up and after an answer, and a turn with the mode plan needs none', async () => {
  const send = (run: Started, body: object) => service.request('POST', `/agent/runs/${run.runId}/followups`, { body });
  const take = async (run: Started, seq: number) => {
    const inbox = await service.request<{ items: { id: string }[] }>('GET', '/harness-support/inbox', {
      key: run.runToken,
    });
    await events(run, { seq, occurred_at: at, type: 'follow_up_taken', follow_up_id: inbox.body.items[0]?.id });
  };
  const passed = await startRun();
  const checking = await service.claimRun((await ask(passed)).body.check_run_id);
  await events(checking, agentStarted());
  await finish(checking, { success: true, checks: [{ name: 'tests', passed: true }] });
  await finish(passed, claim);
  expect((await stateOf(passed.runId)).state).toBe('SUCCEEDED');
  await send(passed, { message: 'Go on.' });
  await take(passed, 2);
  await snapshot(passed, 2);
  await finish(passed, { ...claim, turn: 2 });
  expect(await stateOf(passed.runId)).toMatchObject({
    state: 'FAILED',
    status_message: { error_code: 'checks_failed' },
  });

  const asking = await startRun();
  const request = { request_id: 'q1', kind: 'question', title: 'Which?' };
  await events(asking, { seq: 2, occurred_at: at, type: 'blocked', step_id: 's1', request });
  expect((await stateOf(asking.runId)).state).toBe('BLOCKED');
  await send(asking, { message: 'The first.' });
  await take(asking, 3);
  await finish(asking, claim);
  expect((await stateOf(asking.runId)).state).toBe('FAILED');

  const config = { environment_id: environmentId, checks: [check] };
  const planned = await service.startExecution({ config, mode: 'plan' });
  await events(planned, agentStarted(1, bases));
  await finish(planned, { success: true });
  expect((await stateOf(planned.runId)).state).toBe('SUCCEEDED');
});

test('a later try of a check replaces an earlier one, and a check has no more tries than attempts', async () => {
  const run = await startRun({ check_attempts: 1 });
  const first = (await ask(run)).body.check_run_id;
  expect((await ask(run)).body.check_run_id).toBe(first);
  const checking = await service.claimRun(first);
  await events(checking, agentStarted());
  await finish(checking, { success: true, checks: [{ name: 'tests', passed: true }] });
  const second = (await ask(run, 2)).body.check_run_id;
  expect(second).not.toBe(first);
  expect(await ask(run, 3)).toMatchObject({
    status: 409,
    body: { detail: expect.stringContaining('no attempt left') },
  });
  await finish(run, claim);
  expect((await stateOf(run.runId)).state).toBe('FAILED');
});

test('the task of a check has the base commits and trusted paths from the records of the service, and no secrets', async () => {
  await service.request('PUT', '/secrets/AGENTS_SECRET', { body: { value: 'a-value-of-the-team', scope: 'team' } });
  await service.request('PUT', '/secrets/SETUP_SECRET', { body: { value: 'a-value-of-the-setup', scope: 'team' } });
  const uid = await environment({
    github_repos: [],
    secrets: [{ name: 'AGENTS_SECRET' }, { name: 'SETUP_SECRET', phase: 'setup' }],
  });
  const run = await startRun();
  // The task of a run with a repository asks the code host, which these tests do not have.
  await service.deps.db.query('UPDATE runs SET environment_id = $2, environment_revision = 1 WHERE id = $1', [
    run.runId,
    uid,
  ]);
  await service.deps.db.query(
    `UPDATE run_requests SET config = config || jsonb_build_object('environment_id', $2::text) WHERE run_id = $1`,
    [run.runId, uid],
  );
  const { check_run_id: id } = (await ask(run)).body;
  const checking = await service.claimRun(id);
  const task = await service.request<Record<string, unknown>>('POST', '/harness-support/resolve-prompt', {
    key: checking.runToken,
    body: {},
  });
  expect(task.body).toMatchObject({
    fresh_check: { trusted_paths: ['test'], ...bases },
    workspace: { kind: 'changes', patches: [] },
    max_workspace_bytes: 0,
  });
  expect(task.body).not.toHaveProperty('secrets');
  expect(JSON.stringify(task.body)).not.toContain('a-value-of-the-team');
});

test('after its setup, the token of a check only reports: no model, repository, child, artifact or connection', async () => {
  const run = await startRun();
  const checking = await service.claimRun((await ask(run)).body.check_run_id);
  const key = checking.runToken;
  const connection = { key, body: { host: 'example.com', port: 443 } };
  expect(await service.ok('POST', '/harness-support/connections', connection)).toEqual({
    decision: 'allowed',
  });
  await events(checking, agentStarted());
  expect((await service.request('POST', '/harness-support/connections', connection)).status).toBe(409);
  const artifact = { artifact_type: 'PLAN', data: { content: 'x' } };
  expect((await service.request('POST', '/harness-support/report-artifact', { key, body: artifact })).status).toBe(409);
  expect((await ask(checking)).status).toBe(409);
  const gateway = await service.request(
    'GET',
    `${service.baseUrl}${gatewayPathOf({ owner: 'acme', repo: 'sum' })}/info/refs?service=git-upload-pack`,
    {
      key: null,
      headers: { authorization: `Basic ${btoa(`x:${key}`)}` },
    },
  );
  expect(gateway.status).toBe(401);
  expect(
    (await events(checking, { ...agentStarted(2), type: 'check_started', check_id: 'c', name: 'tests', attempt: 1 }))
      .status,
  ).toBe(200);
});

test('base commits are taken only at the start of an execution, before its harness has worked', async () => {
  const run = await startRun();
  await events(run, agentStarted(2, { base_commits: [{ path: 'sum', commit: 'b'.repeat(40) }] }));
  const { check_run_id: id } = (await ask(run)).body;
  const [row] = await service.deps.db.query<{ base_commits: object[] }>(
    'SELECT base_commits FROM fresh_checks WHERE run_id = $1',
    [id],
  );
  expect(row?.base_commits).toEqual(bases.base_commits);
});

test('a check is refused without base commits or stored changes, with an unknown name, and for another run', async () => {
  const config = { environment_id: environmentId, checks: [check] };
  const bare = await service.startExecution({ config });
  await events(bare, agentStarted());
  await snapshot(bare);
  expect(await ask(bare)).toMatchObject({ status: 409, body: { detail: expect.stringContaining('base commits') } });
  const unsaved = await service.startExecution({ config });
  await events(unsaved, agentStarted(1, bases));
  expect(await ask(unsaved)).toMatchObject({ status: 409, body: { detail: expect.stringContaining('not stored') } });
  const run = await startRun();
  expect((await ask(run, 1, 'other')).status).toBe(400);
  const { check_run_id: id } = (await ask(run)).body;
  const other = await startRun();
  const path = `/harness-support/fresh-checks/${id}`;
  expect((await service.request('GET', path, { key: other.runToken })).status).toBe(404);
  expect((await service.request('POST', `${path}/cancel`, { key: other.runToken, body: {} })).status).toBe(404);
  expect((await service.request('GET', path)).status).toBe(401);
});

test('the run of a check takes no messages, and cannot be repeated', async () => {
  const run = await startRun();
  const { check_run_id: id } = (await ask(run)).body;
  await service.problem(422, 'POST', `/agent/runs/${id}/followups`, { body: { message: '```sh\ntrue\n```' } });
  await service.problem(403, 'POST', `/agent/runs/${id}/rerun`, { body: {} });
});

test.each<[string, object, string]>([
  ['without a repository', { checks: [check] }, 'needs an environment with a repository'],
  ['of an artifact', { checks: [{ name: 'a', artifact: 'x', fresh: true }] }, 'is only for a command'],
  ['with trusted paths but not fresh', { checks: [{ name: 'a', command: 'x', trusted_paths: ['a'] }] }, 'fresh: true'],
  ...['../a', '/a', 'a/', 'a//b', './a', 'a\\b', '[ab]', '{a,b}', '!a'].map((path): [string, object, string] => [
    `with the trusted path ${path}`,
    { checks: [{ ...check, trusted_paths: [path] }] },
    'must be a path of the repository',
  ]),
])('a create with a check %s gets 400', async (_, config, message) => {
  const problem = await service.problem(400, 'POST', '/agent/runs', { body: { prompt: 'x', config } });
  expect(JSON.stringify(problem.errors)).toContain(message);
});

test('a create with a check in a fresh sandbox gets 400 if only workers without such sandboxes are connected', async () => {
  const config = { environment_id: environmentId, checks: [check] };
  const create = (worker_host: string) =>
    service.request('POST', '/agent/runs', { body: { prompt: 'x', config: { ...config, worker_host } } });
  await connect('public', null);
  await connect('open', { backend: 'none', features: ['host-rules'], missing: [] });
  await connect('closed', closed);
  expect((await create('public')).status).toBe(400);
  expect((await create('open')).status).toBe(400);
  expect((await create('closed')).status).toBe(200);
  expect((await create('unknown')).status).toBe(200);
});
