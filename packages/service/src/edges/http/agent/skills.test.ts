/** Tests skills of runs, from the request to the task that the agent gets. */
import { AgentTask } from '@runyard/contract/agent/agent-protocol';
import type { RunItem } from '@runyard/contract/runs/runs';
import { describe, expect, test } from 'vitest';
import { startFakeGitHost } from '../../../../../../test/fakes/git-host.ts';
import { closeAtEnd } from '../../../../../../test/support/close-at-end.ts';
import { openTestService } from '../../../../test/service.ts';

const skill = (name: string, body = `Do ${name}.`) => `---\nname: ${name}\ndescription: About ${name}.\n---\n${body}\n`;
const path = (name: string) => `skills/${name}/SKILL.md`;
const host = closeAtEnd(
  await startFakeGitHost({ accepts: (name, password) => name !== 'acme/private' || password === 'right' }),
);
const service = await openTestService({ env: { RUNYARD_CODE_HOST_URL: host.template } });
const commit = await host.commit('acme', 'site', {
  [path('review')]: skill('review', '```sh\necho reviewed\n```'),
  'skills/review/scripts/run.sh': 'echo run\n',
  [path('test')]: skill('test'),
  [path('broken')]: '---js\n---',
  'SKILL.md': skill('at-the-top'),
});
await host.commit('other', 'same', { [path('test')]: skill('test') });
await host.commit('acme', 'private', { [path('secret')]: skill('secret', 'Private text.') });
const config = { name: 'E', github_repos: [{ owner: 'acme', repo: 'site' }] };
const environmentUid = (await service.ok<{ uid: string }>('POST', '/agent/environments', { body: { config } })).uid;

const read = async (runId: string) => await service.ok<RunItem>('GET', `/agent/runs/${runId}`);
const resolve = (runToken: string) =>
  service.request('POST', '/harness-support/resolve-prompt', { key: runToken, body: {} });

/** Starts a run, and requests its task in the same way as the agent of the run. */
async function start(request: Record<string, unknown>, key = service.key) {
  const runId = await service.newRun({ prompt: undefined, ...request }, key);
  const { runToken } = await service.claimRun(runId);
  const answer = await resolve(runToken);
  return {
    runId,
    runToken,
    status: answer.status,
    task: answer.status === 200 ? AgentTask.parse(answer.body) : undefined,
  };
}

describe('a run with a skill', () => {
  test.each([
    ['skill', { skill: `acme/site:${path('review')}` }],
    ['skill without a path', { skill: 'acme/site:review' }],
    ['config.skill_spec', { config: { skill_spec: 'acme/site:review' } }],
    ['config.skills', { config: { skills: ['acme/site:review'] } }],
    ['skill instead of config.skill_spec', { skill: 'acme/site:review', config: { skill_spec: 'acme/site:gone' } }],
    ['a repository of the environment without its owner', { skill: 'site:review' }],
    ['the same with a path', { skill: `site:${path('review')}` }],
  ])('follows the branch or commit if it is named by %s', async (_, request: Record<string, object | string>) => {
    const config = { ...Object(request.config), environment_id: environmentUid, base_prompt: 'Be brief.' };
    const { runId, task } = await start({ prompt: 'Look.', ...request, config });
    const run = await read(runId);
    expect(run.agent_skill).toEqual({
      name: 'review',
      description: 'About review.',
      full_path: path('review'),
      commit,
    });
    const spec = `acme/site:${path('review')}`;
    expect(run.agent_config).toMatchObject({ skill_spec: spec, name: 'review', base_prompt: 'Be brief.' });
    expect(task?.prompt).toBe('Look.');
    expect(task?.agent_config.base_prompt).toMatch(/^Be brief\.\n\n```sh\necho reviewed\n```\n\nSkills of this run/);
    expect(task?.skills).toEqual([
      {
        name: 'review',
        description: 'About review.',
        files: [
          { path: 'SKILL.md', data: Buffer.from(skill('review', '```sh\necho reviewed\n```')).toString('base64') },
          { path: 'scripts/run.sh', data: Buffer.from('echo run\n').toString('base64') },
        ],
      },
    ]);
  });

  test("may have no prompt: the text of the skill is the runbook, and the skill's name is the title of the run", async () => {
    const { runId, task } = await start({ skill: 'acme/site:review' });
    expect(task?.prompt).toBe('```sh\necho reviewed\n```');
    expect((await read(runId)).title).toBe('review');
    const external = await start({ skill: 'acme/site:review', config: { harness: { type: 'acp', command: ['x'] } } });
    expect(external.task?.prompt).toBe('Follow the skill review.');
  });

  test("gets its agent name from the request, or from the skill's file if the request has no name and the skill's path has no folder", async () => {
    const named = await start({ skill: 'acme/site:review', config: { name: 'mine' } });
    expect((await read(named.runId)).agent_config?.name).toBe('mine');
    const top = await start({ skill: 'acme/site:SKILL.md' });
    expect((await read(top.runId)).agent_config?.name).toBe('at-the-top');
    const found = await service.request<{ runs: RunItem[] }>('GET', '/agent/runs?name=at-the-top');
    expect(found.body.runs.map(({ run_id }) => run_id)).toEqual([top.runId]);
  });

  test('has further skills that its agent may use', async () => {
    const { task, runId } = await start({
      config: { skills: ['acme/site:review', 'acme/site:test', 'acme/site:test'] },
    });
    expect(task?.skills?.map(({ name }) => name)).toEqual(['review', 'test']);
    expect(task?.agent_config.base_prompt).toContain('- test (~/.agents/skills/test/SKILL.md): About test.');
    expect(task?.agent_config.base_prompt).not.toContain('Do test.');
    expect((await read(runId)).agent_config?.skills).toEqual([
      `acme/site:${path('review')}`,
      `acme/site:${path('test')}`,
    ]);
  });

  test("is found and sorted by the skill's name in the request, and also found by the skill's path", async () => {
    const { runId } = await start({ skill: 'acme/site:test' });
    const waiting = await service.newRun({ prompt: undefined, skill: 'acme/site:test' });
    const find = async (query: string) =>
      (await service.ok<{ runs: RunItem[] }>('GET', `/agent/runs?${query}`)).runs.map((run) => run.run_id);
    expect(await find('skill=acme/site:test')).toEqual([waiting, runId]);
    expect(await find('skill_spec=acme/site:test&sort_by=agent&sort_order=asc')).toEqual([runId, waiting]);
    expect(await find(`skill_spec=acme/site:${path('test')}`)).toEqual([runId]);
    await service.request('POST', `/agent/runs/${waiting}/cancel`);
  });

  test('keeps the commit of the skill when its agent asks again, even after the skill has changed', async () => {
    const before = await start({ skill: 'acme/site:test' });
    await host.commit('acme', 'site', { [path('test')]: skill('test', 'Changed.') });
    const again = AgentTask.parse((await resolve(before.runToken)).body);
    expect(again.skills).toEqual(before.task?.skills);
    expect((await read(before.runId)).agent_skill?.commit).toBe(commit);
  });

  test('can be rerun, and the rerun has the present version of the skill', async () => {
    const first = await start({ skill: 'acme/site:review' });
    const again = await service.ok<{ run_id: string }>('POST', `/agent/runs/${first.runId}/rerun`, { body: {} });
    expect((await read(again.run_id)).agent_config?.skill_spec).toBe(`acme/site:${path('review')}`);
    await service.request('POST', `/agent/runs/${again.run_id}/cancel`);
  });
});

describe('the skills of an agent identity', () => {
  const identity = async (skills: string[]) => {
    const body = { name: 'I', environment_id: environmentUid, skills };
    return (await service.ok<{ uid: string }>('POST', '/agent/identities', { body })).uid;
  };

  test('are used by runs of the identity that name no skill', async () => {
    const agent_identity_uid = await identity(['site:review', 'acme/site:test']);
    const { runId, task } = await start({ prompt: 'Look.', agent_identity_uid });
    expect(task?.skills?.map(({ name }) => name)).toEqual(['review', 'test']);
    expect(task?.agent_config.base_prompt).toContain('echo reviewed');
    expect((await read(runId)).agent_skill).toMatchObject({ name: 'review', full_path: path('review') });
    const own = await start({ prompt: 'Look.', agent_identity_uid, skill: 'other/same:test' });
    expect(own.task?.skills?.map(({ name }) => name)).toEqual(['test']);
    expect((await read(own.runId)).agent_config?.skill_spec).toBe(`other/same:${path('test')}`);
  });

  test('are used by runs that are started with a key of the identity', async () => {
    const agent_uid = await identity(['acme/site:test']);
    const body = { name: 'K', kind: 'agent', agent_uid };
    const { key } = await service.ok<{ key: string }>('POST', '/keys', { body });
    expect((await start({ prompt: 'Look.' }, key)).task?.skills?.map(({ name }) => name)).toEqual(['test']);
  });
});

describe('a skill that cannot be used', () => {
  test.each([
    ['is not there', 'acme/site:none', 'invalid_request', 'has no skill none'],
    ['is malformed', `acme/site:${path('broken')}`, 'invalid_request', 'no other language is read'],
    ['is in no repository', 'acme/none:x', 'external_authentication_required', 'has no repository acme/none'],
    [
      'is in a private repository',
      'acme/private:secret',
      'external_authentication_required',
      'bin/runyard code-hosts add',
    ],
  ])('because it %s fails the run with %s', async (_, spec, code, message) => {
    const { runId, status } = await start({ skill: spec });
    expect(status).toBe(401);
    const { state, status_message } = await read(runId);
    expect(state).toBe('FAILED');
    expect(status_message).toMatchObject({ error_code: code, message: expect.stringContaining(message) });
    expect(status_message?.message).toContain(spec);
  });

  test('because its name is the same as that of another skill of the run fails the run', async () => {
    const { runId } = await start({ config: { skills: ['acme/site:test', 'other/same:test'] } });
    expect((await read(runId)).status_message?.message).toContain('has the name test too');
  });

  test('because the code host does not answer ends the run with a retryable error', async () => {
    host.redirect('acme/moved', 'http://127.0.0.1:1/acme/moved.git');
    const { runId } = await start({ skill: 'acme/moved:x' });
    expect((await read(runId)).status_message).toMatchObject({ error_code: 'resource_unavailable', retryable: true });
  });

  test.each([
    ['skill', 'x'],
    ['skill', ':x'],
    ['skill', 'acme/site:'],
    ['skill', 'a/b/c:d'],
    ['skill', 'acme/..:x'],
    ['skill', 'acme/site:../SKILL.md'],
    ['skill', 'acme/site:/etc/SKILL.md'],
    ['skill', 'acme/site:a\\b/SKILL.md'],
    ['skill', 'acme/site:Upper'],
    ['skill', 'site:review'],
    ['skill', `acme/site:${'a'.repeat(500)}/SKILL.md`],
  ])('because of its form is refused with 400: %s %s', async (member, written) => {
    const problem = await service.problem(400, 'POST', '/agent/runs', { body: { prompt: 'a', [member]: written } });
    expect(problem.errors?.map((error) => error.path)).toEqual([member]);
  });

  test('because the run already has the maximum number of skills is refused with 400', async () => {
    const skills = Array.from({ length: 11 }, (_, n) => `acme/site:s${n}`);
    const problem = await service.problem(400, 'POST', '/agent/runs', { body: { config: { skills } } });
    expect(problem.detail).toContain('at most 10');
  });
});

describe('a schedule with a skill', () => {
  test('starts runs that follow the skill', async () => {
    const schedule = {
      name: 'S',
      cron_schedule: '@yearly',
      enabled: true,
      agent_config: { skill_spec: 'acme/site:test' },
    };
    const body = await service.ok<{ id: string }>('POST', '/agent/schedules', { body: schedule });
    const fired = await service.ok<{ run_id: string }>('POST', `/agent/schedules/${body.id}/run`);
    const { runToken } = await service.claimRun(fired.run_id);
    const task = AgentTask.parse((await resolve(runToken)).body);
    expect(task.skills?.map(({ name }) => name)).toEqual(['test']);
    expect(await read(fired.run_id)).toMatchObject({ title: 'test', agent_skill: { name: 'test' } });
  });

  test('is refused if the skill has a wrong form', async () => {
    const body = { name: 'S', cron_schedule: '@yearly', agent_config: { skill_spec: 'x' } };
    const problem = await service.problem(400, 'POST', '/agent/schedules', { body });
    expect(problem.errors?.map(({ path }) => path)).toEqual(['agent_config.skill_spec']);
  });
});

describe('an agent', () => {
  const child = (runToken: string, skill_spec: string) =>
    service.request('POST', '/harness-support/child-runs', {
      key: runToken,
      body: { prompt: 'a', config: { skill_spec } },
    });

  test('gives a child skills of its own environment and run, and no other skills that the team could read', async () => {
    await service.request('POST', '/code-hosts', { body: { scope: 'team', kind: 'token', token: 'right' } });
    const { runToken } = await service.startExecution({
      mode: 'orchestrate',
      config: { environment_id: environmentUid },
    });
    expect((await child(runToken, 'acme/private:secret')).status).toBe(403);
    expect((await child(runToken, 'other/same:test')).status).toBe(403);
    expect((await child(runToken, 'acme/site:test')).status).toBe(200);
    expect((await child(runToken, 'site:test')).status).toBe(200);
    const trusted = await service.startExecution({ mode: 'orchestrate', skill: 'acme/private:secret' });
    expect((await child(trusted.runToken, 'acme/private:secret')).status).toBe(200);
  });

  test("reads a private skill with the team's credential, and no answer contains the credential", async () => {
    const { task, runId } = await start({ skill: 'acme/private:secret' });
    expect(task?.agent_config.base_prompt).toContain('Private text.');
    expect(JSON.stringify([task, await read(runId), service.logged])).not.toContain('right"');
    const foreign = await service.newRun({ prompt: 'a', skill: 'acme/private:secret' }, service.otherKey);
    const { runToken } = await service.claimRun(foreign);
    expect((await resolve(runToken)).status).toBe(401);
    const body = await service.ok<RunItem>('GET', `/agent/runs/${foreign}`, { key: service.otherKey });
    expect(body.status_message?.error_code).toBe('external_authentication_required');
  });
});
