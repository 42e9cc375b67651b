/** Tests runs that repeat other runs for a comparison. */
import type { AgentTask } from '@runyard/contract/agent/agent-protocol';
import type { RunItem } from '@runyard/contract/runs/runs';
import { expect, it } from 'vitest';
import { newPerson, teamUidOf } from '../../../../test/people.ts';
import { openPushes } from '../../../../test/pushes.ts';

const { service, host, first, clone, startRun, siteUrl, git, branchAt } = await openPushes();
const at = '2026-01-02T03:04:05.000Z';

const begin = (key: string, commits: readonly object[] = [{ path: 'site', commit: first }]) => {
  const started = { seq: 1, occurred_at: at, type: 'agent_started', harness: 'oz', model_id: 'm' };
  const body = { events: [{ ...started, base_commits: commits }] };
  return service.request('POST', '/harness-support/events', { key, body });
};
const rerun = (runId: string, body: object = {}, key = service.key) =>
  service.request<{ run_id: string; detail?: string; errors?: { path: string; message: string }[] }>(
    'POST',
    `/agent/runs/${runId}/rerun`,
    { key, body: { comparison: true, ...body } },
  );
const read = async (runId: string) => await service.ok<RunItem>('GET', `/agent/runs/${runId}`);

it('a run for a comparison begins at the commits of the original, does not count for an automation, and cannot push or open pull requests, like the runs below it', async () => {
  const retry = { on: ['checks_failed'], max: 2 };
  const members = { metadata: { automation_id: 'a', ticket: 'R-1' }, parent_run_id: await service.newRun() };
  const original = await startRun({}, { child_runs: { enabled: true }, retry }, members);
  expect((await rerun(original.runId)).body.errors).toMatchObject([
    { path: 'comparison', message: expect.stringContaining('are not recorded') },
  ]);
  await begin(original.runToken);
  await host.commit('acme', 'site', { 'README.md': 'second' });

  const { model_id: _, ...config } = (await read(original.runId)).agent_config ?? {};
  const made = await rerun(original.runId, { config: { ...config, model_id: 'runbook' } });
  expect(made.status, made.text).toBe(200);
  const item = await read(made.body.run_id);
  expect(item).toMatchObject({ is_comparison: true, rerun_of: original.runId, metadata: {} });
  expect(item).not.toHaveProperty('parent_run_id');
  expect(item.agent_config).toMatchObject({ model_id: 'runbook', idle_timeout_minutes: 0 });
  expect(item.agent_config).not.toHaveProperty('retry');
  expect(await read(original.runId)).not.toHaveProperty('is_comparison');

  const { runToken: key } = await service.claimRun(made.body.run_id);
  const task = (token: string) =>
    service
      .request<AgentTask>('POST', '/harness-support/resolve-prompt', { key: token, body: {} })
      .then(({ body }) => body);
  expect((await task(key)).repositories).toMatchObject([{ repo: 'site', ref: first }]);
  await begin(key);
  const child = await service.ok<{ run_id: string }>('POST', '/harness-support/child-runs', {
    key,
    body: { prompt: 'Push.' },
  });
  expect(await read(child.run_id)).toMatchObject({ is_comparison: true });
  const below = await service.claimRun(child.run_id);
  expect((await task(below.runToken)).repositories).toMatchObject([{ ref: first }]);
  await begin(below.runToken);
  const { work, commit } = await clone();
  await commit('changed');
  for (const token of [key, below.runToken]) {
    const pushed = await git(token, work, 'push', siteUrl, 'HEAD:compared');
    expect(pushed.text).toContain('the run was made for a comparison, which changes no repository');
    const body = { repository: { owner: 'acme', repo: 'site' }, head: 'compared', title: 'Compared' };
    const opened = await service.request('POST', '/harness-support/pull-requests', { key: token, body });
    expect([opened.status, opened.text]).toEqual([403, expect.stringContaining('made for a comparison')]);
  }
  expect(await branchAt('compared')).toBe('');
});

it('refuses to compare a run whose files are not those of a commit, and a repository that it has not cloned', async () => {
  const run = await startRun();
  await begin(run.runToken);
  const { conversation_id } = await read(run.runId);
  const later = await service.newRun({ conversation_id, config: (await read(run.runId)).agent_config });
  expect((await rerun(later)).body.errors).toMatchObject([
    { path: 'comparison', message: expect.stringContaining('continued a conversation') },
  ]);
  const environment = (await read(run.runId)).agent_config?.environment_id;
  const config = {
    name: 'E',
    github_repos: [
      { owner: 'acme', repo: 'site' },
      { owner: 'acme', repo: 'other' },
    ],
  };
  await service.request('PUT', `/agent/environments/${environment}`, { body: { config } });
  expect((await rerun(run.runId)).body.errors).toMatchObject([
    {
      path: 'comparison',
      message: 'the run has not cloned the repository acme/other, which its environment names now',
    },
  ]);
});

it('compares no run whose secret the caller may not use, and not for viewers, other teams and the tokens of runs', async () => {
  const team = await teamUidOf(service);
  const [alice, bob, viewer] = [
    await newPerson(service, team, 'member'),
    await newPerson(service, team, 'member'),
    await newPerson(service, team, 'viewer'),
  ];
  const stored = { value: 'the value of alice', scope: 'personal' };
  await service.request('PUT', '/secrets/DEPLOY_KEY', { key: alice.key, body: stored });
  const runId = await service.newRun({ config: { secrets: [{ name: 'DEPLOY_KEY' }] } }, alice.key);
  expect((await rerun(runId, {}, alice.key)).status).toBe(200);
  const byBob = await rerun(runId, {}, bob.key);
  expect([byBob.status, byBob.text]).toEqual([400, expect.stringContaining('DEPLOY_KEY')]);
  expect((await rerun(runId, {}, viewer.key)).status).toBe(403);
  expect((await rerun(runId, {}, service.otherKey)).status).toBe(404);
  const { runToken } = await service.startExecution();
  expect((await rerun(runId, {}, runToken)).status).toBe(401);
});
