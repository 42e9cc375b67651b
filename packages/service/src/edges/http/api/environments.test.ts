import { Environment, ListEnvironmentsResponse } from '@runyard/contract/environments/environments';
import { expect, test } from 'vitest';
import { openTestService } from '../../../../test/service.ts';

const service = await openTestService();

const create = async (config: object) =>
  Environment.parse(await service.ok('POST', '/agent/environments', { body: { config } }));

test('an environment is created, read, replaced, listed and deleted', async () => {
  const config = {
    name: 'Beta',
    github_repos: [{ owner: 'o', repo: 'r' }],
    setup_commands: ['make'],
    providers: {},
    variables: { NODE_ENV: 'test' },
    working_directory: 'r/packages/a',
    another: { kept: true },
  };
  const made = await create(config);
  expect(made.uid).toMatch(/^[A-Za-z0-9]{22}$/);
  expect(made.config).toEqual(config);
  const path = `/agent/environments/${made.uid}`;
  expect(await service.ok('GET', path)).toEqual(made);
  const replaced = await service.request<Environment>('PUT', path, { body: { config: { name: 'Gamma' } } });
  expect(replaced.body.config).toEqual({ name: 'Gamma' });
  const alpha = await create({ name: 'Alpha' });
  const list = async (query: string) =>
    ListEnvironmentsResponse.parse(await service.ok('GET', `/agent/environments${query}`)).environments.map(
      ({ uid }) => uid,
    );
  expect(await list('')).toEqual([alpha.uid, made.uid]);
  expect(await list('?sort_by=name')).toEqual([alpha.uid, made.uid]);
  await service.request('PUT', path, { body: { config: { name: 'Zeta' } } });
  expect(await list('?sort_by=last_updated')).toEqual([made.uid, alpha.uid]);
  expect(await service.ok('DELETE', path)).toEqual({ success: true });
  await service.problem(404, 'GET', path);
});

test('an environment shows its owner, creator and last editor', async () => {
  const made = await create({ name: 'Ours' });
  expect(made.scope).toEqual({ type: 'Team', uid: expect.any(String) });
  expect(made.creator).toEqual({ type: 'user', uid: expect.any(String), display_name: 'Administrator' });
  expect(made.last_editor).toEqual(made.creator);
  const key = await service.newKey({ role: 'member' });
  const path = `/agent/environments/${made.uid}`;
  await service.request('PUT', path, { key, body: { config: { name: 'Theirs' } } });
  const body = await service.ok('GET', '/agent/environments?sort_by=last_updated');
  expect(ListEnvironmentsResponse.parse(body).environments[0]).toMatchObject({
    uid: made.uid,
    creator: made.creator,
    last_editor: { type: 'user', display_name: 'A person' },
  });
});

test('an environment without recorded creator and editor is shown', async () => {
  const { uid } = await create({ name: 'Old' });
  await service.deps.db.query(
    'UPDATE environments SET creator_kind = NULL, creator_uid = NULL, last_editor_kind = NULL, last_editor_uid = NULL WHERE uid = $1',
    [uid],
  );
  const old = Environment.parse(await service.ok('GET', `/agent/environments/${uid}`));
  expect(old).not.toHaveProperty('creator');
  expect(old).not.toHaveProperty('last_editor');
});

test('an environment shows its latest run', async () => {
  const { uid } = await create({ name: 'Used' });
  const runId = await service.newRun({ title: 'In it', config: { environment_id: uid } });
  const body = await service.ok('GET', `/agent/environments/${uid}`);
  expect(Environment.parse(body).last_task_created).toMatchObject({ id: runId, title: 'In it', state: 'QUEUED' });
});

test('an environment shows whether the setup of its latest run failed', async () => {
  const { uid } = await create({ name: 'Broken' });
  const failedSetup = async () => Environment.parse(await service.ok('GET', `/agent/environments/${uid}`)).setup_failed;
  const { runId, executionId, runToken } = await service.startExecution({ config: { environment_id: uid } });
  expect(await failedSetup()).toBe(false);
  const error = { code: 'environment_setup_failed', message: 'There is no make.' };
  const body = { success: false, summary: 'Setup failed.', error };
  await service.request('POST', '/harness-support/finish-task', { key: runToken, body });
  expect(await failedSetup()).toBe(true);
  await service.deps.db.query("UPDATE executions SET phase = 'ended', idle_until = NULL WHERE id = $1", [executionId]);
  // The message continues the same run, so the run is no longer failed.
  await service.request('POST', `/agent/runs/${runId}/followups`, { body: { message: 'Again.' } });
  expect(await failedSetup()).toBe(false);
  await service.newRun({ config: { environment_id: uid } });
  expect(await failedSetup()).toBe(false);
});

test('two creates with the same Idempotency-Key create one environment', async () => {
  const ask = (name: string) =>
    service.request('POST', '/agent/environments', { body: { config: { name } }, headers: { 'idempotency-key': 'e' } });
  const answers = await Promise.all([ask('Once'), ask('Once'), ask('Once')]);
  for (const { status, body } of answers) expect({ status, body }).toEqual({ status: 201, body: answers[0]?.body });
  expect((await ask('Twice')).status).toBe(409);
});

test.each([
  ['no name', {}],
  ['a repository that is a path', { name: 'a', github_repos: [{ owner: '..', repo: 'r' }] }],
  ['a command of a wrong type', { name: 'a', setup_commands: [1] }],
  ['credentials of cloud providers', { name: 'a', providers: { aws: { role_arn: 'r' } } }],
  ['a variable that the agent needs', { name: 'a', variables: { RUNYARD_X: '1' } }],
  ['a variable that is no name', { name: 'a', variables: { 'A-B': '1' } }],
  ['a variable of a wrong type', { name: 'a', variables: { A: 1 } }],
  ['an absolute working directory', { name: 'a', working_directory: '/etc' }],
  ['a working directory outside', { name: 'a', working_directory: 'a/../../b' }],
  ['21 repositories', { name: 'a', github_repos: Array.from({ length: 21 }, () => ({ owner: 'o', repo: 'r' })) }],
])('answers 400 for %s', async (_, config) => {
  await service.problem(400, 'POST', '/agent/environments', { body: { config } });
});

test('a list of environments with an unknown sort gets 400', async () => {
  await service.problem(400, 'GET', '/agent/environments?sort_by=size');
});

test('an environment with an invalid docker_image stays unchanged, and runs in it are refused with a remedy', async () => {
  const config = { name: 'Image', docker_image: 'node:24 --privileged' };
  const made = await create(config);
  const path = `/agent/environments/${made.uid}`;
  expect((await service.ok<Environment>('GET', path)).config).toEqual(config);
  const body = { prompt: 'a', config: { environment_id: made.uid } };
  const problem = await service.problem(400, 'POST', '/agent/runs', { body });
  expect(problem.errors).toEqual([
    {
      path: 'config.environment_id',
      message: expect.stringMatching(
        /docker_image of the environment: "node:24 --privileged" is not the name of a container image/,
      ),
    },
  ]);
  await service.request('PUT', path, { body: { config: { name: 'Image', docker_image: ' ' } } });
  const runId = await service.newRun(body);
  await service.request('PUT', path, { body: { config } });
  await service.problem(400, 'POST', `/agent/runs/${runId}/rerun`);
  // The answer does not reveal the configuration of the environment to the other team.
  const stranger = await service.problem(403, 'POST', '/agent/runs', { body, key: service.otherKey });
  expect(stranger.detail).not.toContain('--privileged');
});

test('a run in an environment with a docker_image waits for a worker that runs images, and shows this reason', async () => {
  const made = await create({ name: 'Image', docker_image: ' node:24 ' });
  const runId = await service.newRun({ prompt: 'a', config: { environment_id: made.uid } });
  const run = await service.request<{ state: string }>('GET', `/agent/runs/${runId}`);
  expect(run.body).toMatchObject({ state: 'QUEUED' });
  const { rows } = await service.deps.db.pool.query('SELECT image FROM executions WHERE run_id = $1', [runId]);
  expect(rows).toEqual([{ image: 'node:24' }]);
  await service.request('POST', `/agent/runs/${runId}/cancel`);
});

test('an agent cannot start a run in an environment whose docker_image is not an image name', async () => {
  const made = await create({ name: 'Child' });
  const { runToken } = await service.startExecution({ mode: 'orchestrate', config: { environment_id: made.uid } });
  const config = { name: 'Child', docker_image: '../etc' };
  await service.request('PUT', `/agent/environments/${made.uid}`, { body: { config } });
  const problem = await service.problem(400, 'POST', '/harness-support/child-runs', {
    key: runToken,
    body: { prompt: 'a' },
  });
  expect(problem.detail).toContain('docker_image of the environment: "../etc"');
});

test('an environment with both docker_image and system is refused', async () => {
  const body = { config: { name: 'Both', docker_image: 'node:24', system: 'debian' } };
  const message = expect.stringContaining('the system of the image');
  const problem = await service.problem(400, 'POST', '/agent/environments', { body });
  expect(problem.errors).toEqual([{ path: 'config.system', message }]);
  const made = await create({ name: 'Own', system: 'debian' });
  expect(made.config.system).toBe('debian');
  const changed = await service.problem(400, 'PUT', `/agent/environments/${made.uid}`, { body });
  expect(changed.errors).toEqual([{ path: 'config.system', message }]);
});

test('an environment is refused with invalid hosts and with limits that no worker has', async () => {
  const many = Array.from({ length: 101 }, (_, index) => `h${index}.example.com`);
  for (const [member, value, path, says] of [
    ['network', { allowed_hosts: ['https://example.com/'] }, 'config.network.allowed_hosts.0', 'must be example.com'],
    ['network', { allowed_hosts: ['*'] }, 'config.network.allowed_hosts.0', 'must be example.com'],
    ['network', { allowed_hosts: many }, 'config.network.allowed_hosts', '100'],
    ['network', { presets: ['cpan'] }, 'config.network.presets.0', 'npm'],
    ['limits', { memory_mb: 64 }, 'config.limits.memory_mb', '128'],
    ['system', 'fedora', 'config.system', 'debian'],
  ] as const) {
    const body = { config: { name: 'Limited', [member]: value } };
    const problem = await service.problem(400, 'POST', '/agent/environments', { body });
    expect(problem.errors).toEqual([{ path, message: expect.stringContaining(says) }]);
  }
  const network = { allowed_hosts: ['*.example.com', '[2001:db8::1]:8443'], presets: ['npm', 'go'] };
  expect((await create({ name: 'Hosts', network })).config.network).toEqual(network);
  expect((await create({ name: 'Empty', network: { allowed_hosts: [] }, limits: {} })).config.limits).toEqual({});
});

test('unknown members of an environment are listed, and misspelt members are refused', async () => {
  const body = { config: { name: 'Colourful', colour: 'red' } };
  const createdEnvironment = await service.request('POST', '/agent/environments', { body });
  expect(createdEnvironment.headers.get('x-ignored-fields')).toBe('"config.colour"');
  const misspelt = { config: { name: 'Misspelt', setupCommands: ['make'] } };
  const problem = await service.problem(400, 'POST', '/agent/environments', { body: misspelt });
  expect(problem.detail).toContain('did you mean setup_commands?');
});
