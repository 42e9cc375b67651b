import { RunAgentResponse } from '@runyard/contract/runs/run-request';
import type { RunItem } from '@runyard/contract/runs/runs';
import { describe, expect, test } from 'vitest';
import { openTestService } from '../../../../test/service.ts';

const service = await openTestService();
const agentKey = await service.newKey({ kind: 'agent' });

describe('POST /agent/runs answers 200', () => {
  test('with the id and the state of the run, which can be read at once', async () => {
    const answer = RunAgentResponse.parse(await service.ok('POST', '/agent/runs', { body: { prompt: 'Say hello' } }));
    expect(answer).toMatchObject({ state: 'QUEUED', task_id: answer.run_id });
    const run = await service.request<{ prompt: string }>('GET', `/agent/runs/${answer.run_id}`);
    expect(run.body).toMatchObject({ run_id: answer.run_id, prompt: 'Say hello', title: 'Say hello', source: 'API' });
  });

  test('and keeps unknown members of the configuration', async () => {
    const config = { name: 'nightly', memory_stores: [{ uid: 'm' }], newer_member: 'r' };
    const id = await service.newRun({ config, unknown_member: 1 });
    const body = await service.ok<{ agent_config: unknown }>('GET', `/agent/runs/${id}`);
    expect(body.agent_config).toEqual(config);
  });

  test("and shows the first of several skills as the run's skill, and the list can be filtered by this skill", async () => {
    const skills = ['acme/tools:skills/first/SKILL.md', 'acme/tools:second'];
    const id = await service.newRun({ config: { skills } });
    const body = await service.ok<RunItem>('GET', `/agent/runs/${id}`);
    expect(body).toMatchObject({
      agent_config: { skills, skill_spec: skills[0] },
      agent_skill: { name: 'first', full_path: 'skills/first/SKILL.md' },
    });
    const found = await service.request<{ runs: RunItem[] }>('GET', `/agent/runs?skill=${skills[0]}&name=first`);
    expect(found.body.runs.map(({ run_id }) => run_id)).toEqual([id]);
    const again = await service.request<{ run_id: string }>('POST', `/agent/runs/${id}/rerun`);
    expect((await service.ok<RunItem>('GET', `/agent/runs/${again.body.run_id}`)).agent_config).toEqual(
      body.agent_config,
    );
  });

  test('and cuts the title at 80 characters, never inside a character', async () => {
    const id = await service.newRun({ prompt: `${'x'.repeat(79)}😀 more\nsecond line` });
    const body = await service.ok<{ title: string }>('GET', `/agent/runs/${id}`);
    expect(body.title).toBe('x'.repeat(79));
  });

  test('for a prompt of 1 MB', async () => {
    const prompt = 'é'.repeat(512 * 1024);
    const id = await service.newRun({ prompt });
    const body = await service.ok<{ prompt: string }>('GET', `/agent/runs/${id}`);
    expect(body.prompt).toBe(prompt);
  });

  test('and a child run inherits the metadata of its parent and names its parent', async () => {
    const parent = await service.newRun({ metadata: { ticket: '1', who: 'parent' } });
    const child = await service.newRun({ parent_run_id: parent, metadata: { who: 'child' } });
    const body = await service.ok('GET', `/agent/runs/${child}`);
    expect(body).toMatchObject({
      parent_run_id: parent,
      source: 'ORCHESTRATION',
      metadata: { ticket: '1', who: 'child' },
    });
  });

  test('for a run that continues a conversation without a prompt', async () => {
    const first = await service.newRun();
    const body = await service.ok<{ conversation_id: string }>('GET', `/agent/runs/${first}`);
    const second = await service.newRun({ prompt: undefined, conversation_id: body.conversation_id });
    expect(await service.ok('GET', `/agent/runs/${second}`)).toMatchObject({
      conversation_id: body.conversation_id,
    });
  });

  test('and stores attachments, also the images of older clients', async () => {
    const data = Buffer.from('hello').toString('base64');
    const attachments = [{ file_name: 'a b.txt', mime_type: 'text/plain', data }];
    const id = await service.newRun({ attachments, images: [{ data, mime_type: 'image/png' }] });
    const rows = await service.deps.db.query(
      'SELECT file_name, size_bytes FROM attachments WHERE run_id = $1 ORDER BY position',
      [id],
    );
    expect(rows).toEqual([
      { file_name: 'a b.txt', size_bytes: 5 },
      { file_name: 'image-1.png', size_bytes: 5 },
    ]);
  });

  test('and repeats the first answer for a second request with the same Idempotency-Key and body', async () => {
    const send = () =>
      service.request('POST', '/agent/runs', { body: { prompt: 'Once' }, headers: { 'idempotency-key': 'key-1' } });
    const [first, second] = await Promise.all([send(), send()]);
    const third = await send();
    expect(second.body).toEqual(first.body);
    expect(third.body).toEqual(first.body);
  });

  test('with another run if another API key of the team uses the same Idempotency-Key', async () => {
    const headers = { 'idempotency-key': 'key-2' };
    const other = await service.newKey();
    const one = await service.request('POST', '/agent/runs', { body: { prompt: 'Once' }, headers });
    const two = await service.request('POST', '/agent/runs', { body: { prompt: 'Once' }, headers, key: other });
    expect(two.body).not.toEqual(one.body);
  });
});

describe('the header X-Oz-Api-Source', () => {
  const create = async (key: string, source: string, body: object = {}) => {
    const headers = { 'x-oz-api-source': source };
    const answer = await service.request<{ run_id: string }>('POST', '/agent/runs', {
      key,
      headers,
      body: { prompt: 'a', ...body },
    });
    return await service.ok<RunItem>('GET', `/agent/runs/${answer.body.run_id}`);
  };

  test.each([
    ['CLI', 'CLI', 'CLI'],
    ['cloud_mode', 'CLOUD_MODE', 'CLOUD_MODE'],
    ['WEB_APP', 'WEB_APP', 'WEB_APP'],
    ['GITHUB_ACTION', 'API', 'GITHUB_ACTION'],
    ['SLACK', 'API', 'SLACK'],
    ['JIRA', 'API', 'JIRA'],
    ['SCHEDULED_AGENT', 'API', 'API'],
    ['ORCHESTRATION', 'API', 'API'],
    ['WEBHOOK', 'API', 'API'],
    ['GITHUB_WEBHOOK', 'API', 'API'],
    ['LOCAL', 'API', 'API'],
    ['SELF_IMPROVEMENT', 'API', 'API'],
    ['CLI, GITHUB_ACTION', 'API', 'API'],
    ['__proto__', 'API', 'API'],
    ['', 'API', 'API'],
  ])('%j names the source %s with the key of a person, and %s with an agent key', async (header, person, agent) => {
    const made = [await create(service.key, header), await create(agentKey, header)];
    expect(made.map(({ source }) => source)).toEqual([person, agent]);
  });

  test('does not let the key of a person create a run that cannot be cancelled', async () => {
    const [mine, ofAgent] = [await create(service.key, 'GITHUB_ACTION'), await create(agentKey, 'GITHUB_ACTION')];
    expect([mine.is_run_type_cancellable, ofAgent.is_run_type_cancellable]).toEqual([true, false]);
    expect((await service.request('POST', `/agent/runs/${mine.run_id}/cancel`)).status).toBe(200);
    await service.problem(422, 'POST', `/agent/runs/${ofAgent.run_id}/cancel`);
  });

  test('does not set the source of a child run', async () => {
    const parent = await service.newRun();
    expect((await create(agentKey, 'GITHUB_ACTION', { parent_run_id: parent })).source).toBe('ORCHESTRATION');
  });

  test('also sets the source of a rerun', async () => {
    const body = await service.ok<{ run_id: string }>('POST', `/agent/runs/${await service.newRun()}/rerun`, {
      headers: { 'x-oz-api-source': 'CLI' },
    });
    expect((await service.ok<RunItem>('GET', `/agent/runs/${body.run_id}`)).source).toBe('CLI');
  });
});
