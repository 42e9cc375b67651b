/**
 * Tests secrets that a run was granted. Only the sandbox of the run gets the
 * secrets, and the service does not store their values in anything
 * else.
 */
import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import type { AgentTask } from '@runyard/contract/agent/agent-protocol';
import { redacted } from '@runyard/system/redaction/redactor';
import { expect, it } from 'vitest';
import { testChildRuns } from '../../../../test/child-runs.ts';
import { openTestService } from '../../../../test/service.ts';
import { endSandbox } from '../../../runs/executions/reconcile/sandbox-end.ts';

const service = await openTestService();
const { run } = testChildRuns(service);
const { db, executionDeps, settings } = service.deps;
await db.query('UPDATE teams SET max_concurrent_executions = 10000');

const token = 'kT9"deploy/token+é';
const certificate = `-----BEGIN-----\n${'Ab3/'.repeat(30)}\n-----END-----\n`;
const ungranted = 'never granted 77';
const base64 = Buffer.from(`:${token}`).toString('base64');
/** Texts that must not appear in anything stored, in all spellings that a program may print. */
const planted = [
  token,
  'Ab3/'.repeat(30),
  base64.slice(3, -4),
  encodeURIComponent(token),
  JSON.stringify(token).slice(1, -1),
];
const leak = (what: string) =>
  `${what}: ${[token, certificate, base64, encodeURIComponent(token), JSON.stringify({ token })].join(' ')}!`;

const put = async (name: string, value: string) => {
  await service.ok('PUT', `/secrets/${name}`, { body: { value, scope: 'team' } });
};
await put('TOKEN', token);
await put('CERTIFICATE', certificate);
await put('OTHER', ungranted);

const secrets = [
  { name: 'TOKEN', variable: 'DEPLOY_TOKEN' },
  { name: 'CERTIFICATE', as: 'file' },
];
const agentCall = (runToken: string, method: string, at: string, body: object = {}) =>
  service.request<Record<string, string>>(method, `/harness-support${at}`, { key: runToken, body });
const taskOf = async (runToken: string) =>
  await service.ok<AgentTask>('POST', '/harness-support/resolve-prompt', { key: runToken, body: {} });

async function filesOf(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => path.join(entry.parentPath, entry.name));
}

/** Returns the rows, blobs and lines of the log that contain a planted text. */
async function leaks(): Promise<string[]> {
  const holds = (text: string) => planted.some((each) => text.includes(each));
  const tables = await db.query<{ name: string }>(
    `SELECT table_name AS name FROM information_schema.tables WHERE table_schema = current_schema() AND table_type = 'BASE TABLE'`,
  );
  const found: string[] = [];
  for (const { name } of tables) {
    const rows = await db.query<{ row: string; plain: string }>(
      `SELECT to_jsonb(t)::text AS row, t::text AS plain FROM "${name}" t`,
    );
    found.push(...rows.filter(({ row, plain }) => holds(row) || holds(plain)).map(({ row }) => `${name} ${row}`));
  }
  for (const file of await filesOf(path.join(settings.RUNYARD_DATA_DIR, 'blobs')))
    if (holds(await readFile(file, 'utf8'))) found.push(file);
  return [...found, ...service.logged.filter(holds)];
}

const running = await service.startExecution({ mode: 'orchestrate', prompt: 'a', config: { secrets } });
const task = await taskOf(running.runToken);
const at = '2026-01-02T03:04:05.000Z';
let seq = 0;
const events = async (...bodies: object[]) => {
  const sent = bodies.map((body) => ({ seq: ++seq, occurred_at: at, ...body }));
  const answer = await agentCall(running.runToken, 'POST', '/events', { events: sent });
  expect(answer.status, answer.text).toBe(200);
};

it('the service gives the granted secrets to the agent, with the variables that the run names', () => {
  expect(task.secrets).toEqual([
    { name: 'TOKEN', variable: 'DEPLOY_TOKEN', as: 'variable', value: token },
    { name: 'CERTIFICATE', variable: 'CERTIFICATE', as: 'file', value: certificate },
  ]);
  expect(new Set(task.redact)).toEqual(new Set([token, certificate]));
});

it('the service shows when a secret was used, and stores only encrypted copies of it', async () => {
  const listed = await service.request<{ secrets: { name: string; last_used_at?: string }[] }>('GET', '/secrets');
  expect(listed.body.secrets.filter(({ last_used_at }) => last_used_at).map(({ name }) => name)).toEqual([
    'CERTIFICATE',
    'TOKEN',
  ]);
  expect(await leaks()).toEqual([]);
});

it('the service stores events, transcript and conversation without secrets, even if a secret is split between two events', async () => {
  const raw = (text: string) => ({ type: 'transcript', line: JSON.stringify({ raw: text }) });
  await events(
    { type: 'agent_started', harness: 'oz', model_id: 'runbook' },
    { type: 'setup_step_started', step_id: 's', kind: 'setup_command', name: leak('step') },
    {
      type: 'setup_step_finished',
      step_id: 's',
      kind: 'setup_command',
      name: leak('step'),
      duration_ms: 1,
      output_tail: leak('tail'),
      error: leak('error'),
    },
    { type: 'turn_started', step_id: 't', prompt: leak('message') },
    {
      type: 'action',
      step_id: 't',
      action_id: 'a',
      category: 'command',
      name: 'shell',
      title: leak('title'),
      input: { command: leak('x') },
      requires_approval: false,
    },
    { type: 'notice', step_id: 't', name: 'note', data: { [leak('key')]: leak('value') } },
  );
  for (const text of leak('chunks').match(/[\s\S]{1,5}/gu) ?? []) {
    await events(
      { type: 'text', step_id: 't', message_id: 'm', role: 'assistant', text },
      { type: 'action_output', action_id: 'a', text },
      raw(text),
    );
  }
  await events(
    { type: 'action_result', action_id: 'a', state: 'completed', output: leak('result'), duration_ms: 1 },
    { type: 'turn_finished', step_id: 't' },
  );
  expect(await leaks()).toEqual([]);
  const conversation = await service.request('GET', `/agent/runs/${running.runId}/conversation`);
  expect(conversation.status, conversation.text).toBe(200);
  expect(conversation.text).toContain(redacted);
  const stream = await service.request('GET', `/agent/runs/${running.runId}/events?follow=false`);
  const shownText = conversation.text + stream.text;
  expect(planted.filter((each) => shownText.includes(each))).toEqual([]);
});

it.each([
  ['PLAN', { title: leak('title'), content: leak('content') }],
  ['FILE', { filename: 'a', description: leak('description'), title: leak('title') }],
  ['PULL_REQUEST', { url: `https://example.com/?token=${encodeURIComponent(token)}`, branch: leak('branch') }],
])('the service stores an artifact of the type %s without secrets', async (artifact_type, data) => {
  const answer = await agentCall(running.runToken, 'POST', '/report-artifact', { artifact_type, data });
  expect(answer.status, answer.text).toBe(200);
  if (answer.body.upload_url) {
    await service.ok('PUT', answer.body.upload_url, { key: null, raw: leak('bytes') });
  }
  expect(await leaks()).toEqual([]);
});

it('the service masks secrets in the files of a snapshot and in the memory of a harness', async () => {
  const bytes = leak('patch');
  const files = [{ filename: 'a.patch', size_bytes: Buffer.byteLength(bytes) }];
  const begun = await service.request<{ files: { upload_url: string }[] }>('POST', '/harness-support/upload-snapshot', {
    key: running.runToken,
    body: { turn: 1, files },
  });
  await service.ok('PUT', begun.body.files[0]?.upload_url ?? '', { key: null, raw: bytes });
  await service.ok('PUT', '/harness-support/memory?turn=1', {
    key: running.runToken,
    raw: JSON.stringify({ said: leak('memory') }),
    headers: { 'content-type': 'application/octet-stream' },
  });
  expect(await leaks()).toEqual([]);
});

it('the service removes secrets of the parent from the prompts of child runs and from messages to child runs', async () => {
  const child = await agentCall(running.runToken, 'POST', '/child-runs', {
    prompt: leak('prompt'),
    title: leak('title'),
    config: { base_prompt: leak('base') },
  });
  expect(child.status, child.text).toBe(200);
  const runId = child.body.run_id ?? '';
  const message = await agentCall(running.runToken, 'POST', '/messages', { run_id: runId, message: leak('message') });
  expect(message.status, message.text).toBe(200);
  expect(await leaks()).toEqual([]);
  const { runToken } = await service.claimRun(runId);
  const ofChild = await taskOf(runToken);
  expect(ofChild.secrets).toBeUndefined();
});

it('the service refuses a child with a secret that the parent does not have, and gives a child a secret of the parent', async () => {
  const start = (names: string[], more: object = {}) =>
    agentCall(running.runToken, 'POST', '/child-runs', {
      prompt: 'a',
      config: { secrets: names.map((name) => ({ name })), ...more },
    });
  const refused = await start(['OTHER']);
  expect([refused.status, refused.body.error_code], refused.text).toEqual([403, 'not_authorized']);
  expect(refused.body.detail).toContain('OTHER');
  const allowed = await start(['TOKEN']);
  expect(allowed.status, allowed.text).toBe(200);
  const { runToken } = await service.claimRun(allowed.body.run_id ?? '');
  expect((await taskOf(runToken)).secrets?.map(({ name }) => name)).toEqual(['TOKEN']);
});

it('the service refuses a child in another environment that grants secrets which the parent does not have', async () => {
  const createdEnvironment = await service.request<{ uid: string }>('POST', '/agent/environments', {
    body: { config: { name: 'E', secrets: [{ name: 'OTHER' }] } },
  });
  const config = { child_runs: { enabled: true, overrides: ['environment_id'] } };
  const { runToken } = await service.startExecution({ prompt: 'a', config });
  await taskOf(runToken);
  const child = { prompt: 'a', config: { environment_id: createdEnvironment.body.uid } };
  const refused = await agentCall(runToken, 'POST', '/child-runs', child);
  expect([refused.status, refused.body.detail]).toEqual([403, expect.stringContaining('OTHER')]);
  const inside = await service.startExecution({ prompt: 'a', config: { environment_id: createdEnvironment.body.uid } });
  expect((await taskOf(inside.runToken)).secrets).toMatchObject([{ name: 'OTHER', value: ungranted }]);
});

it('a run token cannot read, set or delete secrets', async () => {
  for (const [method, at] of [
    ['GET', '/secrets'],
    ['PUT', '/secrets/TOKEN'],
    ['DELETE', '/secrets/TOKEN'],
  ] as const)
    await service.problem(401, method, at, {
      key: running.runToken,
      ...(method === 'PUT' ? { body: { value: ungranted, scope: 'team' } } : {}),
    });
});

it('the service redacts the prompt, title, files and follow-ups of a run that names a secret', async () => {
  const body = await service.ok<{ run_id: string }>('POST', '/agent/runs', {
    body: {
      prompt: leak('prompt'),
      title: leak('title').slice(0, 100),
      metadata: { note: token },
      config: { secrets, base_prompt: leak('base') },
      attachments: [{ file_name: 'a', mime_type: 'text/plain', data: Buffer.from(leak('file')).toString('base64') }],
    },
  });
  expect(await run(body.run_id)).toMatchObject({ metadata: { note: redacted } });
  const followup = { message: leak('follow-up') };
  await service.ok('POST', `/agent/runs/${running.runId}/followups`, { body: followup });
  expect(await leaks()).toEqual([]);
});

it('the service still redacts the old value of a secret after the value has changed, and after the secret was deleted', async () => {
  await put('TOKEN', 'the second value 1');
  await service.request('DELETE', '/secrets/CERTIFICATE?scope=team');
  await events(
    { type: 'turn_started', step_id: 'u', prompt: 'again' },
    { type: 'notice', step_id: 'u', name: 'note', data: leak('later') },
    { type: 'turn_finished', step_id: 'u' },
  );
  expect(await leaks()).toEqual([]);
  const problem = await service.problem(400, 'POST', '/agent/runs', { body: { prompt: 'a', config: { secrets } } });
  expect(problem.errors?.[0]?.message).toContain('CERTIFICATE');
});

it('the service ends a run whose secret was deleted before the start of the run, and names the secret', async () => {
  await put('LATE', 'a late value 5');
  const created = await service.newRun({ prompt: 'a', config: { secrets: [{ name: 'LATE' }] } });
  await service.request('DELETE', '/secrets/LATE?scope=team');
  const { runToken } = await service.claimRun(created);
  await service.request('POST', '/harness-support/resolve-prompt', { key: runToken, body: {} });
  expect(await run(created)).toMatchObject({
    state: 'FAILED',
    status_message: { error_code: 'resource_not_found', message: expect.stringContaining('LATE') },
  });
});

it('the service gives no personal secret to a run whose owner has left the team', async () => {
  const leaver = await service.newKey({ role: 'member' });
  await service.request('PUT', '/secrets/MINE', { key: leaver, body: { value: ungranted, scope: 'personal' } });
  const created = await service.newRun({ prompt: 'a', config: { secrets: [{ name: 'MINE' }] } }, leaver);
  await db.query(
    'DELETE FROM team_members WHERE user_id = (SELECT user_id FROM api_keys WHERE last_four = $1 AND prefix = left($2, length(prefix)))',
    [leaver.slice(-4), leaver],
  );
  const { runToken } = await service.claimRun(created);
  await service.request('POST', '/harness-support/resolve-prompt', { key: runToken, body: {} });
  expect(await run(created)).toMatchObject({ state: 'FAILED' });
});

it('the service stores the failure of a turn, a shutdown and the end of a sandbox without secrets', async () => {
  const failed = { success: false, summary: leak('summary'), error: { message: leak('failed') } };
  const answer = await agentCall(running.runToken, 'POST', '/finish-task', failed);
  expect(answer.status, answer.text).toBe(200);
  await agentCall(running.runToken, 'POST', '/report-shutdown', { reason: leak('reason') });
  await expect.poll(() => service.logged.join('')).toContain(`reason: ${redacted}`);
  await endSandbox(executionDeps, running.executionId, { kind: 'exited', message: leak('stderr'), exitCode: 1 });
  expect(await leaks()).toEqual([]);
  const runText = JSON.stringify(await run(running.runId));
  expect(runText).toContain(redacted);
  expect(planted.filter((each) => runText.includes(each))).toEqual([]);
});
