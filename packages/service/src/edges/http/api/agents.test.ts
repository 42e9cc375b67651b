import { type AgentVariant, ListAgentsResponse } from '@runyard/contract/team/agents';
import { beforeAll, describe, expect, test } from 'vitest';
import { startFakeGitHost } from '../../../../../../test/fakes/git-host.ts';
import { closeAtEnd } from '../../../../../../test/support/close-at-end.ts';
import { openTestService } from '../../../../test/service.ts';
import type { Principal } from '../../../team/access/keys/principal.ts';
import { listAgents } from '../../../team/skills/list-agents.ts';

const skill = (name: string) => `---\nname: ${name}\ndescription: About ${name}.\n---\nDo ${name}.\n`;
const tokens: Readonly<Record<string, string>> = { 'acme/private': 'of-team', 'acme/own': 'of-person' };
const host = closeAtEnd(
  await startFakeGitHost({ accepts: (name, password) => [undefined, password].includes(tokens[name]) }),
);
const service = await openTestService({ env: { RUNYARD_CODE_HOST_URL: host.template } });
await host.commit('acme', 'site', {
  'skills/zebra/SKILL.md': skill('zebra'),
  'skills/ant/SKILL.md': skill('ant'),
  '.claude/skills/bad/SKILL.md': 'no front matter',
});
await host.commit('acme', 'other', { '.agents/skills/ant/SKILL.md': skill('ant') });
await host.commit('acme', 'private', { 'skills/hidden/SKILL.md': skill('hidden') });
await host.commit('acme', 'own', { 'skills/own/SKILL.md': skill('own') });
const member = await service.newKey({ role: 'member' });

const environment = async (name: string, repos: readonly string[], key = service.key): Promise<string> => {
  const github_repos = repos.map((repo) => ({ owner: 'acme', repo }));
  const createdEnvironment = await service.request<{ uid: string }>('POST', '/agent/environments', {
    key,
    body: { config: { name, github_repos } },
  });
  return createdEnvironment.body.uid;
};
const list = async (query = '', key = service.key) =>
  ListAgentsResponse.parse(await service.ok('GET', `/agent${query}`, { key })).agents;
const names = async (query = '', key = service.key) => (await list(query, key)).map(({ name }) => name);
const variantsOf = async (query: string): Promise<AgentVariant[]> =>
  (await list(query)).flatMap((each) => each.variants);

describe('the list of agents of the environments', () => {
  let uids: string[];
  beforeAll(async () => {
    uids = [await environment('One', ['site']), await environment('Two', ['site', 'other'])];
  });

  test('contains the skills by name, each with its places', async () => {
    const agents = await list();
    expect(agents.map(({ name, variants }) => [name, variants.map(({ id }) => id).sort()])).toEqual([
      ['ant', ['acme/other:.agents/skills/ant/SKILL.md', 'acme/site:skills/ant/SKILL.md']],
      ['zebra', ['acme/site:skills/zebra/SKILL.md']],
    ]);
    expect(agents[1]?.variants[0]).toEqual({
      id: 'acme/site:skills/zebra/SKILL.md',
      description: 'About zebra.',
      base_prompt: 'Do zebra.',
      source: { owner: 'acme', name: 'site', skill_path: 'skills/zebra/SKILL.md' },
      environments: [
        { uid: uids[0], name: 'One' },
        { uid: uids[1], name: 'Two' },
      ],
    });
  });

  test('contains malformed skills and unreadable repositories only on request, with file and fault', async () => {
    const broken = await environment('Broken', ['missing', 'private']);
    expect(await names()).toEqual(['ant', 'zebra']);
    const agents = await list('?include_malformed_skills=true');
    const errors = agents.flatMap(({ name, variants }) => variants.map(({ error }) => [name, error]));
    expect(errors).toEqual([
      ['acme/missing', expect.stringContaining('has no repository acme/missing')],
      ['acme/private', expect.stringContaining('asks for a credential for acme/private')],
      ['ant', undefined],
      ['ant', undefined],
      ['bad', '.claude/skills/bad/SKILL.md has no front matter: its first line must be ---.'],
      ['zebra', undefined],
    ]);
    await service.request('DELETE', `/agent/environments/${broken}`);
  });

  test('is sorted by the last run of the team, with agents without a run at the end', async () => {
    await service.newRun({ prompt: 'a', skill: 'acme/site:skills/zebra/SKILL.md' });
    await service.newRun({ prompt: 'a', skill: 'acme/other:.agents/skills/ant/SKILL.md' }, service.otherKey);
    const agents = await list('?sort_by=last_run');
    expect(agents.map(({ name }) => name)).toEqual(['zebra', 'ant']);
    expect(agents[0]?.variants[0]?.last_run_timestamp).toMatch(/Z$/);
    expect(agents[1]?.variants.map(({ last_run_timestamp }) => last_run_timestamp)).toEqual([undefined, undefined]);
  });

  test('shows a new commit with refresh, and a repository only while an environment has it', async () => {
    await host.commit('acme', 'other', { 'skills/new/SKILL.md': skill('new') });
    expect(await names()).not.toContain('new');
    expect(await names('?refresh=true')).toContain('new');
    const added = await environment('Three', ['private']);
    await service.request('DELETE', `/agent/environments/${added}`);
    expect((await list('?include_malformed_skills=true')).map(({ name }) => name)).not.toContain('acme/private');
  });
});

describe('the list of agents of one repository', () => {
  test('contains the skills of a repository that is in no environment', async () => {
    expect((await variantsOf('?repo=acme/other')).map(({ id }) => id)).toContain('acme/other:skills/new/SKILL.md');
  });

  test.each(['acme', 'acme/', '/site', 'a/b/c', '../..', 'acme/..', 'a%20b/c', 'acme/site.git/x', ''])(
    'answers 400 for repo=%s',
    async (repo) => {
      const problem = await service.problem(400, 'GET', `/agent?repo=${repo}`);
      expect(problem.errors?.map(({ path }) => path)).toEqual(['repo']);
    },
  );

  test('answers 400 with the reason why a repository cannot be read', async () => {
    const problem = await service.problem(400, 'GET', '/agent?repo=acme/nothing');
    expect(problem.detail).toContain('has no repository acme/nothing');
  });

  test('lets a viewer name only repositories of environments', async () => {
    const viewer: Principal = {
      keyId: '',
      kind: 'user',
      teamId: service.teamId,
      teamUid: '',
      creator: { kind: 'user', uid: 'a viewer', displayName: '' },
      role: 'viewer',
      isOperator: false,
      from: null,
    };
    const listed = (repo: string) =>
      listAgents(service.deps, viewer, {
        repository: { owner: 'acme', repo },
        refresh: false,
        sortBy: 'name',
        includeMalformed: false,
      });
    expect(await listed('site')).toMatchObject({ kind: 'agents', agents: [{ name: 'ant' }, { name: 'zebra' }] });
    expect(await listed('own')).toEqual({ kind: 'not_of_environment' });
  });
});

describe('a private repository', () => {
  const token = (key: string, scope: string, token: string) =>
    service.request<{ id: string }>('POST', '/code-hosts', { key, body: { scope, kind: 'token', token } });
  const may = async (repo: string, key: string) => {
    const answer = await service.request('GET', `/agent?repo=acme/${repo}`, { key });
    expect(answer.text).not.toMatch(/of-team|of-person/);
    return answer.status === 200;
  };

  test('is listed at once for people whose credential can read it, until the credential is deleted', async () => {
    expect(await may('private', service.key)).toBe(false);
    const stored = await token(service.key, 'team', 'of-team');
    expect(await may('private', service.key)).toBe(true);
    expect(await may('private', member)).toBe(true);
    expect(await may('private', service.otherKey)).toBe(false);
    await service.request('DELETE', `/code-hosts/${stored.body.id}`);
    expect(await may('private', service.key)).toBe(false);
    expect(service.logged.join()).not.toMatch(/of-team|of-person/);
  });

  test('is listed only for the person whose personal credential can read it', async () => {
    await environment('Own', ['own']);
    await token(member, 'personal', 'of-person');
    expect(await names('', member)).toContain('own');
    expect(await names()).not.toContain('own');
    expect(await may('own', service.key)).toBe(false);
    expect(await may('own', await service.newKey({ kind: 'agent' }))).toBe(false);
  });
});

test("another team's list contains only repositories of environments that the other team owns or uses as a guest", async () => {
  expect(await list('', service.otherKey)).toEqual([]);
  const uid = await environment('Theirs', ['other'], service.otherKey);
  const [shown] = await list('', service.otherKey);
  expect(shown?.variants[0]?.environments).toEqual([{ uid, name: 'Theirs' }]);
  expect((await list()).flatMap(({ variants }) => variants.flatMap((each) => each.environments))).not.toContainEqual(
    expect.objectContaining({ uid }),
  );
});
