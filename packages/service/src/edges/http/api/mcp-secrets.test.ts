/**
 * Tests `${NAME}` in the variables and headers of a run's MCP servers: who may use a secret, which program or header gets its value, and
 * where the value must not appear.
 */
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: these are names of secrets in configurations
import { randomUUIDv7 } from 'node:crypto';
import http, { type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { AgentTask } from '@runyard/contract/agent/agent-protocol';
import type { RunItem } from '@runyard/contract/runs/runs';
import { afterAll, beforeEach, describe, expect, test } from 'vitest';
import { newPerson, teamUidOf } from '../../../../test/people.ts';
import { openTestService } from '../../../../test/service.ts';

const service = await openTestService({ env: { RUNYARD_ALLOW_PRIVATE_NETWORKS: '127.0.0.0/8' } });
const { db } = service.deps;
await db.query('UPDATE teams SET max_concurrent_executions = 10000');
const team = await teamUidOf(service);
const [owner, colleague] = [await newPerson(service, team, 'admin'), await newPerson(service, team, 'member')];
const agentKey = await service.newKey({ kind: 'agent' });

const set = async (name: string, scope: 'personal' | 'team', key: string, value = `${name}-${randomUUIDv7()}`) => {
  await service.ok('PUT', `/secrets/${name}`, { key, body: { value, scope } });
  return value;
};
await set('THEIRS', 'personal', colleague.key);
await set('BOTH', 'personal', colleague.key);
await set('BOTH', 'personal', owner.key);
const broken = await set('BROKEN', 'personal', owner.key, 'value-of-two\r\nx-evil: lines');
const ofTeam = await set('TEAM', 'team', owner.key);
let mine = '';
beforeEach(async () => {
  mine = await set('MINE', 'personal', owner.key);
});

/** An MCP server that answers with everything that it received. */
const seen: IncomingHttpHeaders[] = [];
const echo = http.createServer(async (request, response) => {
  for await (const _ of request);
  seen.push(request.headers);
  response.writeHead(200, { 'content-type': 'application/json', 'mcp-session-id': String(request.headers['x-site']) });
  response.end(JSON.stringify({ jsonrpc: '2.0', id: 1, result: { headers: request.headers } }));
});
await new Promise<void>((resolve) => echo.listen(0, '127.0.0.1', resolve));
afterAll(() => {
  echo.close();
  echo.closeAllConnections();
});
beforeEach(() => void seen.splice(0));

const url = `http://127.0.0.1:${(echo.address() as AddressInfo).port}/mcp`;
const far = { url, headers: { Authorization: 'Bearer ${MINE}', 'X-Site': '${TEAM}' } };
const near = { command: 'tickets', env: { TOKEN: 'token ${MINE}', PLAIN: '${ not a name }' } };
const run = (mcp_servers: object, key = owner.key, config: object = {}) => ({
  key,
  body: { prompt: 'a', config: { mcp_servers, ...config } },
});
const begin = async (mcp_servers: object, config: object = {}) =>
  await service.claimRun(
    await service.newRun({ prompt: 'a', mode: 'orchestrate', config: { mcp_servers, ...config } }, owner.key),
  );
const taskOf = async (runToken: string) => {
  const path = '/harness-support/resolve-prompt';
  return await service.ok<AgentTask>('POST', path, { key: runToken, body: {} });
};
const report = async (runToken: string, text: string) => {
  const body = (type: string, more: object) => ({ occurred_at: '2026-01-02T03:04:05.000Z', type, ...more });
  const events = [
    body('agent_started', { harness: 'oz', model_id: 'runbook' }),
    body('turn_started', { step_id: 't', prompt: 'a' }),
    body('text', { step_id: 't', message_id: 'm', role: 'assistant', text }),
  ].map((event, index) => ({ seq: index + 1, ...event }));
  await service.ok('POST', '/harness-support/events', { key: runToken, body: { events } });
};
const call = (runToken: string, name = 'far') =>
  service.request<{ error?: { message: string } }>('POST', `/gateway/mcp/${name}`, {
    key: runToken,
    body: { jsonrpc: '2.0', id: 1, method: 'tools/list' },
  });

test('the gateway puts the value into a header, and neither the sandbox nor an answer shows the value, even if the server repeats it', async () => {
  const { runId, runToken } = await begin({ far });
  const task = await taskOf(runToken);
  expect(task.mcp_servers).toEqual([{ name: 'far', gateway_path: '/api/v1/gateway/mcp/far' }]);
  expect([task.secrets, task.redact]).toEqual([undefined, undefined]);
  const answer = await call(runToken);
  expect(answer.status, answer.text).toBe(200);
  expect(seen).toMatchObject([{ authorization: `Bearer ${mine}`, 'x-site': ofTeam }]);
  await report(runToken, `It said ${mine} and ${Buffer.from(ofTeam).toString('base64')}`);
  const shown = await service.request('GET', `/agent/runs/${runId}`, { key: owner.key });
  expect(shown.text).toContain('Bearer ${MINE}');
  const conversation = await service.request('GET', `/agent/runs/${runId}/conversation`, { key: owner.key });
  expect(conversation.text).toContain('«redacted»');
  const stored = await db.query<{ text: string }>('SELECT row_to_json(r)::text AS text FROM runs r');
  const headers = JSON.stringify([...answer.headers]);
  for (const value of [mine, ofTeam, Buffer.from(ofTeam).toString('base64')])
    for (const text of [
      JSON.stringify(task),
      answer.text,
      headers,
      shown.text,
      conversation.text,
      JSON.stringify(stored),
    ])
      expect(text).not.toContain(value);
  expect(service.logged.join()).not.toContain(mine);
});

test('only the environment of the named program contains the value of a variable, and the agent redacts this value', async () => {
  const task = await taskOf((await begin({ near })).runToken);
  expect(task.mcp_servers).toEqual([
    { name: 'near', command: 'tickets', args: [], env: { TOKEN: `token ${mine}`, PLAIN: '${ not a name }' } },
  ]);
  expect(task.secrets).toBeUndefined();
  expect(task.redact).toContain(mine);
  const both = await taskOf((await begin({ near }, { secrets: [{ name: 'MINE', variable: 'OWN' }] })).runToken);
  expect(both.mcp_servers?.[0]?.env?.TOKEN).toBe(`token ${mine}`);
  expect(both.secrets).toEqual([{ name: 'MINE', variable: 'OWN', as: 'variable', value: mine }]);
});

describe('a request is refused', () => {
  test.each([
    [
      'a personal secret of somebody else',
      400,
      { near: { command: 'x', env: { A: '${THEIRS}' } } },
      /near\.env\.A.*no secret THEIRS/,
    ],
    [
      'a name that is no secret',
      400,
      { far: { url, headers: { a: '${NOTHING}' } } },
      /far\.headers\.a.*no secret NOTHING/,
    ],
    ['a header with a line break', 400, { far: { url, headers: { a: '${BROKEN}' } } }, /far\.headers\.a.*line break/],
    [
      'more names than a run may have',
      400,
      { x: { command: 'x', env: Object.fromEntries(Array.from({ length: 51 }, (_, at) => [`A${at}`, `\${N${at}}`])) } },
      /more than 50 secrets/,
    ],
  ])('because of %s, with status %i', async (_, status, servers, message) => {
    const problem = await service.problem(status, 'POST', '/agent/runs', run(servers));
    expect(JSON.stringify(problem)).toMatch(message);
    expect(JSON.stringify(problem)).not.toContain(broken.slice(0, 12));
  });

  test('with 403 if it names a secret that the service account may not use', async () => {
    const problem = await service.problem(
      403,
      'POST',
      '/agent/runs',
      run({ x: { url, headers: { a: '${TEAM}' } } }, agentKey),
    );
    expect(problem.detail).toMatch(/^config\.mcp_servers\.x\.headers\.a: the secret TEAM may not be used/);
  });

  test('with 403 and a remedy if a configuration that another person wrote names a secret of the caller', async () => {
    const theirs = await service.newRun(
      { config: { mcp_servers: { x: { url, headers: { a: '${BOTH}' } } } } },
      colleague.key,
    );
    const problem = await service.problem(403, 'POST', `/agent/runs/${theirs}/rerun`, { key: owner.key, body: {} });
    expect(problem).toMatchObject({
      error_code: 'not_authorized',
      detail: expect.stringMatching(/^config\.mcp_servers\.x\.headers\.a: The secret BOTH is withheld/),
    });
  });

  test('with 403 if a child run would get a secret in its sandbox that only the gateway may use for the parent', async () => {
    const { runToken } = await begin({ far });
    await taskOf(runToken);
    const child = (config: object) => ({ key: runToken, body: { prompt: 'a', config } });
    const path = '/harness-support/child-runs';
    for (const config of [{ mcp_servers: { x: near } }, { secrets: [{ name: 'MINE' }] }]) {
      const problem = await service.problem(403, 'POST', path, child(config));
      expect(problem.detail).toContain('this run does not have MINE');
    }
    const own = { mcp_servers: { x: { url, headers: { a: '${MINE}' } } } };
    await service.problem(403, 'POST', path, child(own));
    const started = await service.ok<{ run_id: string }>('POST', path, child({ mcp_servers: { same: { url } } }));
    const { runToken: ofChild } = await service.claimRun(started.run_id);
    expect((await call(ofChild, 'same')).status).toBe(200);
    expect(seen).toMatchObject([{ authorization: `Bearer ${mine}` }]);
  });
});

test('a turn of another person uses no header with a secret that this person may not use', async () => {
  const { runId, runToken, executionId } = await begin({ far });
  await taskOf(runToken);
  await report(runToken, 'a');
  expect((await call(runToken)).status).toBe(200);
  const followUp = { key: colleague.key, body: { message: 'print all headers' } };
  expect((await service.request('POST', `/agent/runs/${runId}/followups`, followUp)).status).toBe(200);
  const take =
    'UPDATE followups SET execution_id = $2, taken_at = clock_timestamp() WHERE run_id = $1 AND taken_at IS NULL';
  await db.query(take, [runId, executionId]);
  const refused = await call(runToken);
  expect([refused.status, refused.body.error?.message]).toEqual([
    502,
    expect.stringMatching(/cannot be used: its headers need the secret MINE, which this run, .* may not use now/),
  ]);
  expect(seen).toHaveLength(1);
  // The sandbox of this run has a program with the value, so a follow-up of another person is refused.
  const holder = await begin({ near });
  await service.problem(403, 'POST', `/agent/runs/${holder.runId}/followups`, followUp);
});

test('a header has the current value of its secret until the secret is deleted, and reports of the run are redacted', async () => {
  const { runId, runToken } = await begin({ far });
  await taskOf(runToken);
  const later = await set('MINE', 'personal', owner.key);
  await call(runToken);
  expect(seen).toMatchObject([{ authorization: `Bearer ${later}` }]);
  await report(runToken, `It said ${later}`);
  const conversation = await service.request('GET', `/agent/runs/${runId}/conversation`, { key: owner.key });
  expect(conversation.text).toContain('It said «redacted»');
  await set('MINE', 'personal', owner.key, 'changed-to\nseveral lines');
  expect((await call(runToken)).body.error?.message).toMatch(/not a valid value of an HTTP header/);
  await service.request('DELETE', '/secrets/MINE?scope=personal', { key: owner.key });
  expect((await call(runToken)).body.error?.message).toMatch(/there is no secret MINE/);
  expect(seen).toHaveLength(1);
});

test('the headers of a stored server reach only runs whose texts are all from the team, or that a person of the team has accepted', async () => {
  const body = { name: 'S', url, headers: { Authorization: 'Bearer of-the-stored-server' } };
  const servers = {
    far: { id: (await service.ok<{ id: string }>('POST', '/agent/mcp-servers', { key: owner.key, body })).id },
  };
  const program = { name: 'P', command: 'tickets', env: { TOKEN: 'of-the-program' } };
  const near = await service.request<{ id: string }>('POST', '/agent/mcp-servers', { key: owner.key, body: program });
  const leaver = await newPerson(service, team, 'member');
  const config = { name: 'E', setup_commands: ['curl evil'] };
  const made = await service.request<{ uid: string }>('POST', '/agent/environments', {
    key: leaver.key,
    body: { config },
  });
  const environment = { environment_id: made.body.uid };
  const { runToken } = await begin(servers, environment);
  expect((await call(runToken)).status).toBe(200);
  expect(seen.splice(0)).toMatchObject([{ authorization: 'Bearer of-the-stored-server' }]);
  const ofProgram = await begin({ near: { id: near.body.id } }, environment);

  await service.request('DELETE', `/teams/${team}/members/${leaver.uid}`);
  const refused = await call(runToken);
  expect([refused.status, refused.body.error?.message]).toEqual([502, expect.stringContaining('accept environment')]);
  expect(seen).toEqual([]);
  // The variables of a stored program would get into the sandbox.
  const task = await service.request('POST', '/harness-support/resolve-prompt', { key: ofProgram.runToken, body: {} });
  expect([task.status, task.text.includes('of-the-program')]).toEqual([401, false]);
  const item = await service.request<RunItem>('GET', `/agent/runs/${ofProgram.runId}`, { key: owner.key });
  expect(item.body.status_message?.message).toContain(`accept environment ${made.body.uid}`);
  const problem = await service.problem(403, 'POST', '/agent/runs', run(servers, owner.key, environment));
  for (const part of ['config.mcp_servers.far', leaver.uid, `accept environment ${made.body.uid}`])
    expect(problem.detail).toContain(part);
  await service.request('POST', '/acceptances', {
    key: owner.key,
    body: { kind: 'environment', uid: made.body.uid, revision: 1 },
  });
  expect((await call((await begin(servers, environment)).runToken)).status).toBe(200);
});
