/** Tests values of MCP servers and of code hosts. These values are not granted secrets, but they are also removed from everything that a
 * run stores. */
import type { AgentTask } from '@runyard/contract/agent/agent-protocol';
import { redacted } from '@runyard/system/redaction/redactor';
import { describe, expect, test } from 'vitest';
import { admitGuest, newPerson, newTeam } from '../../../../test/people.ts';
import { openTestService } from '../../../../test/service.ts';

// No program listens at this address, so the service cannot ask the code host whether the run can read the repository. It then leaves the
// clone to the agent.
const service = await openTestService({ env: { RUNYARD_CODE_HOST_URL: 'http://127.0.0.1:1/{owner}/{repo}.git' } });
const { db } = service.deps;

const values = { stdio: 'stdio-Value-4711', header: 'header-Value-4712', host: 'host-Value-4713' };
const planted = Object.values(values);

const post = async (path: string, body: object, key?: string) =>
  await service.ok<{ id: string; uid: string }>('POST', path, { body, ...(key ? { key } : {}) });
const taskOf = async (runToken: string) => {
  const path = '/harness-support/resolve-prompt';
  return await service.ok<AgentTask>('POST', path, { key: runToken, body: {} });
};

describe('a run with MCP servers and a private repository', async () => {
  const stdio = await post('/agent/mcp-servers', { name: 'S', command: 's', env: { TOKEN: values.stdio, DEBUG: '1' } });
  const headers = { authorization: `Bearer ${values.header}` };
  const http = await post('/agent/mcp-servers', { name: 'H', url: 'https://example.com/mcp', headers });
  await post('/code-hosts', { kind: 'token', scope: 'team', token: values.host });
  const environment = await post('/agent/environments', {
    config: { name: 'E', github_repos: [{ owner: 'acme', repo: 'app' }] },
  });
  const config = {
    environment_id: environment.uid,
    mcp_servers: { stdio: { id: stdio.id }, http: { id: http.id } },
  };
  const { runId, runToken } = await service.startExecution({ prompt: 'a', mode: 'orchestrate', config });
  const task = await taskOf(runToken);

  test('gives the agent no header and no token of a code host, not even as values to redact', () => {
    const text = JSON.stringify(task);
    expect([text.includes(values.header), text.includes(values.host)]).toEqual([false, false]);
    // Values that occur in ordinary text, such as 1, are not redacted.
    expect(task.redact).toEqual([values.stdio]);
  });

  test('stores none of the values', async () => {
    const text = planted.map((value) => `${value} ${Buffer.from(`:${value}`).toString('base64')}`).join(' and ');
    const body = (type: string, more: object) => ({ occurred_at: '2026-01-02T03:04:05.000Z', type, ...more });
    const events = [
      body('agent_started', { harness: 'oz', model_id: 'runbook' }),
      body('turn_started', { step_id: 't', prompt: 'a' }),
      body('text', { step_id: 't', message_id: 'm', role: 'assistant', text }),
      body('notice', { step_id: 't', name: 'note', data: { text } }),
      body('turn_finished', { step_id: 't' }),
    ].map((event, index) => ({ seq: index + 1, ...event }));
    await service.ok('POST', '/harness-support/events', { key: runToken, body: { events } });
    const conversation = await service.request('GET', `/agent/runs/${runId}/conversation`);
    expect(conversation.text).toContain(redacted);
    const stored = await db.query<{ text: string }>('SELECT row_to_json(e)::text AS text FROM conversation_events e');
    const visibleText = conversation.text + stored.map((row) => row.text).join() + service.logged.join();
    expect(planted.filter((value) => visibleText.includes(value))).toEqual([]);
  });

  test('does not give the values to child runs that name the same server', async () => {
    const asked = { prompt: 'a', config: { secrets: [{ name: 'stdio' }] } };
    await service.problem(403, 'POST', '/harness-support/child-runs', { key: runToken, body: asked });
  });
});

test("a guest of an environment gets neither the secrets of the environment nor secrets of the guest's team with the same names", async () => {
  const theirs = await newTeam(service, 'Theirs');
  const owner = { headers: { 'x-team-uid': theirs } };
  const secret = (value: string) => ({ body: { value, scope: 'team' } });
  await service.request('PUT', '/secrets/SHARED', { ...owner, ...secret('the secret of theirs') });
  await service.request('PUT', '/secrets/SHARED', secret('the secret of ours'));
  const config = { name: 'Trap', secrets: [{ name: 'SHARED' }], setup_commands: ['env'] };
  const createdEnvironment = await service.ok<{ uid: string }>('POST', '/agent/environments', {
    ...owner,
    body: { config },
  });
  const teams = await service.ok<{ teams: { uid: string; is_current: boolean }[] }>('GET', '/teams');
  const ours = teams.teams.find(({ is_current }) => is_current)?.uid ?? '';
  const guest = await newPerson(service, ours, 'member');
  await admitGuest(service, createdEnvironment.uid, guest, owner);
  const runId = await service.newRun({ prompt: 'a', config: { environment_id: createdEnvironment.uid } }, guest.key);
  const task = await taskOf((await service.claimRun(runId)).runToken);
  expect(task.environment?.uid).toBe(createdEnvironment.uid);
  expect([task.secrets, task.redact]).toEqual([undefined, undefined]);
});

test('the service does not store the value of a named secret in the prompt and metadata of a schedule', async () => {
  const value = 'pasted-Value-4714';
  await service.request('PUT', '/secrets/PASTED', { body: { value, scope: 'personal' } });
  const schedule = { name: 'S', cron_schedule: '@yearly', prompt: `Use ${value}.`, metadata: { note: value } };
  const config = { secrets: [{ name: 'PASTED' }] };
  const { id } = await post('/agent/schedules', { ...schedule, agent_config: config });
  const scheduleAnswer = await service.request('GET', `/agent/schedules/${id}`);
  expect(scheduleAnswer.body).toMatchObject({ prompt: `Use ${redacted}.`, agent_config: config });
  const rows = await db.query<{ text: string }>('SELECT row_to_json(s)::text AS text FROM schedules s');
  expect(rows.map(({ text }) => text).join()).not.toContain(value);
});
