/** Tests that the published TypeScript client of the API works with this service if only its base URL and key are changed. */
import OzAPI, {
  AuthenticationError,
  BadRequestError,
  ConflictError,
  NotFoundError,
  PermissionDeniedError,
  RateLimitError,
  UnprocessableEntityError,
} from 'oz-agent-sdk';
import { expect, test, vi } from 'vitest';
import { claim } from '../packages/service/src/runs/executions/transitions/transitions.ts';
import { openTestService } from '../packages/service/test/service.ts';
import { startFakeGitHost } from './fakes/git-host.ts';
import { closeAtEnd } from './support/close-at-end.ts';

const codeHost = closeAtEnd(await startFakeGitHost());
const service = await openTestService({ env: { RUNYARD_CODE_HOST_URL: codeHost.template } });
const client: OzAPI = new OzAPI({ apiKey: service.key, baseURL: `${service.baseUrl}/api/v1`, maxRetries: 0 });

const unknownId = '01900000-0000-7000-8000-000000000000';

test('the client creates a run and reads it', async () => {
  const created = await client.agent.run({ prompt: 'Say hello', title: 'Hello', config: { name: 'sdk' } });
  expect(created.state).toBe('QUEUED');
  const run = await client.agent.runs.retrieve(created.run_id);
  expect(run).toMatchObject({
    run_id: created.run_id,
    title: 'Hello',
    prompt: 'Say hello',
    agent_config: { name: 'sdk' },
  });
});

test('the client lists agents and starts a run with the skill of an agent', async () => {
  const text = '---\nname: deploy\ndescription: Deploys.\n---\nDeploy it.\n';
  await codeHost.commit('acme', 'site', { '.claude/skills/deploy/SKILL.md': text, 'skills/bad/SKILL.md': '' });
  const { agents = [] } = await client.agent.list({ repo: 'acme/site', refresh: true, sort_by: 'last_run' });
  const [variant] = agents[0]?.variants ?? [];
  expect(agents).toHaveLength(1);
  expect(variant).toMatchObject({
    id: 'acme/site:.claude/skills/deploy/SKILL.md',
    base_prompt: 'Deploy it.',
    source: { owner: 'acme', name: 'site', skill_path: '.claude/skills/deploy/SKILL.md' },
  });
  const created = await client.agent.run({ skill: variant?.id ?? '' });
  const run = await client.agent.runs.retrieve(created.run_id);
  expect(run).toMatchObject({ agent_config: { name: 'deploy', skill_spec: variant?.id } });
  const { runs } = await client.agent.runs.list({ skill: variant?.id ?? '' });
  expect(runs.map(({ run_id }) => run_id)).toEqual([created.run_id]);
  await expect(client.agent.list({ repo: 'acme' })).rejects.toThrow(BadRequestError);
});

test('the client lists runs with filters and follows the cursor', async () => {
  for (let i = 0; i < 3; i += 1) await client.agent.run({ prompt: `${i}`, config: { name: 'listed' } });
  const first = await client.agent.runs.list({ name: 'listed', state: ['QUEUED', 'INPROGRESS'], limit: 2 });
  expect(first.page_info.has_next_page).toBe(true);
  const cursor = first.page_info.next_cursor ?? '';
  const second = await client.agent.runs.list({ name: 'listed', state: ['QUEUED', 'INPROGRESS'], limit: 2, cursor });
  expect([...first.runs, ...second.runs].map((run) => run.prompt)).toEqual(['2', '1', '0']);
});

test('the client sends images with a prompt', async () => {
  const created = await client.agent.run({ prompt: 'Look', images: [{ data: 'aGVsbG8=', mime_type: 'image/png' }] });
  const rows = await service.deps.db.query('SELECT mime_type FROM attachments WHERE run_id = $1', [created.run_id]);
  expect(rows).toEqual([{ mime_type: 'image/png' }]);
});

test('the client cancels a run and gets the id of the run as a string', async () => {
  const created = await client.agent.run({ prompt: 'Say hello' });
  expect(await client.agent.runs.cancel(created.run_id)).toBe(created.run_id);
});

test('the client creates, lists, changes, pauses, resumes and deletes schedules', async () => {
  const { schedules } = client.agent;
  const wanted = { name: 'Zebra', cron_schedule: '0 9 * * *', prompt: 'Review.', enabled: true };
  const created = await schedules.create({ ...wanted, agent_config: { name: 'review' }, team: true });
  expect(created).toMatchObject({ ...wanted, agent_config: { name: 'review' }, scope: { type: 'Team' } });
  expect(created.history?.next_run).toMatch(/T09:00:00\.000000Z$/);
  await schedules.create({ name: 'Ant', cron_schedule: '@hourly', prompt: 'Wait.' });
  expect((await schedules.list()).schedules.map(({ name }) => name)).toEqual(['Ant', 'Zebra']);
  const changed = await schedules.update(created.id, { ...wanted, name: 'Yak', cron_schedule: '@every 90m' });
  expect(changed).toMatchObject({ name: 'Yak', cron_schedule: '@every 90m', agent_config: { name: 'review' } });
  expect((await schedules.pause(created.id)).enabled).toBe(false);
  expect((await schedules.resume(created.id)).enabled).toBe(true);
  expect((await schedules.retrieve(created.id)).name).toBe('Yak');
  expect(await schedules.delete(created.id)).toEqual({ success: true });
  await expect(schedules.retrieve(created.id)).rejects.toThrow(NotFoundError);
  await expect(schedules.create({ ...wanted, cron_schedule: '0 0 31 2 *' })).rejects.toThrow(BadRequestError);
});

test('the client throws its own error classes', async () => {
  const ended = await client.agent.run({ prompt: 'x' });
  await client.agent.runs.cancel(ended.run_id);
  const pending = await service.startExecution({}, 'PENDING');
  const selfHosted = await service.newRun({ config: { worker_host: 'box' } });
  const stranger = new OzAPI({ apiKey: 'wrong', baseURL: `${service.baseUrl}/api/v1`, maxRetries: 0 });
  const teamless = new OzAPI({
    apiKey: service.key,
    baseURL: `${service.baseUrl}/api/v1`,
    maxRetries: 0,
    defaultHeaders: { 'X-Warp-Team-Uid': 'someone-else' },
  });
  await expect(client.agent.run({})).rejects.toThrow(BadRequestError);
  await expect(client.agent.runs.cancel(ended.run_id)).rejects.toThrow(BadRequestError);
  await expect(client.agent.runs.list({ limit: 501 })).rejects.toThrow(BadRequestError);
  await expect(stranger.agent.runs.list()).rejects.toThrow(AuthenticationError);
  await expect(teamless.agent.runs.list()).rejects.toThrow(PermissionDeniedError);
  await expect(client.agent.runs.retrieve(unknownId)).rejects.toThrow(NotFoundError);
  await expect(client.agent.runs.cancel(pending.runId)).rejects.toThrow(ConflictError);
  await expect(client.agent.runs.cancel(selfHosted)).rejects.toThrow(UnprocessableEntityError);
});

test('the client repeats a request automatically after a retryable conflict', async () => {
  const pending = await service.startExecution({}, 'PENDING');
  const patient = new OzAPI({ apiKey: service.key, baseURL: `${service.baseUrl}/api/v1`, maxRetries: 1 });
  await expect(patient.agent.runs.cancel(pending.runId)).rejects.toThrow(ConflictError);
});

test('one cancel call of the client cancels a PENDING run as soon as the run is claimed', async () => {
  const { runId, executionId, assignmentId } = await service.startExecution({}, 'PENDING');
  const patient = new OzAPI({ apiKey: service.key, baseURL: `${service.baseUrl}/api/v1`, maxRetries: 10 });
  const cancelled = patient.agent.runs.cancel(runId);
  const refusedOnce = () => service.logged.some((line) => line.includes(`${runId}/cancel`));
  await vi.waitUntil(refusedOnce, { timeout: 60_000 });
  await claim(service.deps.db, { runId, executionId, args: { assignment_id: assignmentId, lease_seconds: 90 } });
  expect(await cancelled).toBe(runId);
});

test('the client gets the time until the next allowed call when it makes too many calls', async () => {
  const lead = await service.startExecution({ mode: 'orchestrate' });
  const inside = new OzAPI({ apiKey: lead.runToken, baseURL: `${service.baseUrl}/api/v1`, maxRetries: 0 });
  const child = await inside.post<{ run_id: string }>('/harness-support/child-runs', { body: { prompt: 'A part.' } });
  const say = () =>
    inside.post('/harness-support/messages', { body: { run_id: child.run_id, message: 'Hello.' } }).then(
      () => 'sent',
      (error: unknown) => error,
    );
  const refused = (await Promise.all(Array.from({ length: 61 }, say))).filter((answer) => answer !== 'sent');
  expect(refused).toEqual([expect.any(RateLimitError)]);
  expect((refused[0] as RateLimitError).headers.get('retry-after')).toBe('10');
});
