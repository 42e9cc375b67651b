/** Factories that take their definition from a repository on a real git host, over the real API. */
import { createHmac, randomUUID } from 'node:crypto';
import { FactorySource, FactorySync, SetFactorySourceResponse } from '@runyard/contract/factory-sources';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type FakeGitHost, startFakeGitHost } from '../../../../../test/fakes/git-host.ts';
import { automationFile, baseFiles, factoryFile, testDefinitions, toBody } from '../../../test/definitions.ts';
import { newPerson, teamUidOf } from '../../../test/people.ts';
import { startTestService, type TestService } from '../../../test/service.ts';
import { syncDueSources } from '../../definitions/source/sync.ts';

let host: FakeGitHost;
let service: TestService;
let definitions: ReturnType<typeof testDefinitions>;
let path = '';
let uid = '';
/** A repository of its own for each test. */
let repo = '';
const going = new AbortController().signal;

beforeAll(async () => {
  host = await startFakeGitHost({ accepts: (_name, password) => password === 'of-team' });
  service = await startTestService({ env: { RUNYARD_CODE_HOST_URL: host.template } });
  definitions = testDefinitions(service);
  await service.request('POST', '/code-hosts', { body: { scope: 'team', kind: 'token', token: 'of-team' } });
});
afterAll(async () => {
  await service.close();
  await host.close();
});
beforeEach(async () => {
  path = await definitions.open();
  uid = path.split('/').at(-1) ?? '';
  repo = `r-${randomUUID()}`;
});

type Content = Readonly<Record<string, string | undefined>>;
const filesOf = (content: Content, folder = ''): Record<string, string> =>
  Object.fromEntries(
    Object.entries(content).flatMap(([file, text]) => (text === undefined ? [] : [[folder + file, text]])),
  );
const push = (content: Content, branch = 'main') => host.replace('acme', repo, { branch, files: filesOf(content) });

const set = async (more: object = {}, key = service.key): Promise<SetFactorySourceResponse> => {
  const answer = await service.request('PUT', `${path}/source`, { key, body: { repository: `acme/${repo}`, ...more } });
  expect(answer.status, answer.text).toBe(200);
  return SetFactorySourceResponse.parse(answer.body);
};
const source = async () => FactorySource.parse((await service.request('GET', `${path}/source`)).body);
const syncNow = async (body?: object) => {
  const answer = await service.request('POST', `${path}/source/sync`, body ? { body } : {});
  expect(answer.status, answer.text).toBe(200);
  return FactorySync.parse(answer.body);
};
/** One round of the loop of a process. */
const round = () => syncDueSources(service.deps, going);
const makeDue = () => service.deps.db.query('UPDATE factory_sources SET due_at = now()');
const names = async () => (await definitions.automations()).map(({ name }) => name);
const lines = (sync: FactorySync) =>
  sync.errors?.map((each) => `${each.path}:${each.line}:${each.column}: ${each.message}`);

describe('a source', () => {
  test('applies the present commit of a private repository, and each one that is pushed', async () => {
    const first = await push(baseFiles);
    const { sync, source: shown } = await set();
    expect(sync).toMatchObject({ outcome: 'applied', commit: first, version: 1 });
    expect(shown).toMatchObject({ repository: `acme/${repo}`, applied_commit: first, set_by: { type: 'user' } });
    expect(await definitions.stored()).toMatchObject({ version: 1, commit: first, drift: [] });
    const webhook = await definitions.webhookUid();

    const second = await push({ ...baseFiles, 'automations/look/automation.md': automationFile(webhook) });
    await round();
    expect(await names(), 'it is not looked at before its time').toEqual([]);
    await makeDue();
    await round();
    expect(await names()).toEqual(['look']);
    expect(await source()).toMatchObject({ applied_commit: second, last_sync: { outcome: 'applied', commit: second } });
    expect(await definitions.webhookUid()).toBe(webhook);
  });

  test('takes a branch and a folder, and ignores other files of the repository', async () => {
    await host.replace('acme', repo, { files: { 'README.md': 'a' } });
    await host.replace('acme', repo, {
      branch: 'live',
      files: { ...filesOf(baseFiles, 'factories/billing/'), 'agents/foreman/agent.md': 'not of the folder' },
      links: { 'factories/README': '/etc/passwd' },
    });
    const { sync } = await set({ branch: 'live', folder: 'factories/billing' });
    expect(sync).toMatchObject({ outcome: 'applied', version: 1 });
    expect((await definitions.factory()).name).toBe('Billing');
  });

  test('keeps the last good state when a later commit is faulty, and shows the faults with their places', async () => {
    const good = await push(baseFiles);
    await set();
    const bad = await push({ ...baseFiles, 'webhooks/alerts.yaml': 'secretNam: ALERTS\n', 'agents/new/agent.md': '' });
    await makeDue();
    await round();
    const shown = await source();
    expect(shown).toMatchObject({ applied_commit: good, last_sync: { outcome: 'faulty', commit: bad } });
    expect(shown.last_sync?.errors).toContainEqual({
      path: 'webhooks/alerts.yaml',
      line: 1,
      column: 1,
      message: expect.stringContaining('did you mean secretName?'),
      suggestion: 'secretName',
    });
    expect(await definitions.stored()).toMatchObject({ version: 1, commit: good, drift: [] });
    expect((await definitions.factory()).agents).toHaveLength(2);
  });

  test('follows a forced push to a history that has nothing of the old one', async () => {
    await push(baseFiles);
    await set();
    const other = await push({ ...baseFiles, 'factory.yaml': factoryFile.replace('Billing', 'Other') });
    const again = await push(baseFiles);
    await makeDue();
    await round();
    expect(await source()).toMatchObject({ applied_commit: again });
    expect(again).not.toBe(other);
  });

  test('makes no new version of a commit that changes nothing of the definition', async () => {
    await push(baseFiles);
    await set();
    const later = await host.commit('acme', repo, { 'src/main.c': 'int main() {}' });
    expect(await syncNow()).toMatchObject({ outcome: 'applied', version: 1, changes: [] });
    expect(await source()).toMatchObject({ applied_commit: later });
  });

  test('plans a dry run and changes nothing, also before it is set', async () => {
    const commit = await push(baseFiles);
    const planned = await set({ dry_run: true });
    expect(planned.source).toBeUndefined();
    expect(planned.sync).toMatchObject({ outcome: 'applied', dry_run: true, version: 0, commit });
    expect(planned.sync.changes.map(({ kind }) => kind)).toContain('webhook');
    await service.problem(404, 'GET', `${path}/source`);
    await set();
    await push({ 'factory.yaml': factoryFile, 'agents/foreman/agent.md': baseFiles['agents/foreman/agent.md'] });
    const later = await syncNow({ dry_run: true });
    expect(later.changes.map(({ action, kind, name }) => `${action} ${kind} ${name}`)).toEqual([
      'delete agent reviewer',
      'delete webhook alerts',
    ]);
    expect(await definitions.webhooks()).toHaveLength(1);
  });

  test('refuses an apply by hand, but not its dry run, until it is removed', async () => {
    await push(baseFiles);
    await set();
    const refused = await service.problem(409, 'PUT', `${path}/definition`, { body: toBody(baseFiles) });
    expect(refused.detail).toContain(`takes its definition from acme/${repo}`);
    expect((await definitions.apply(baseFiles, { dry_run: true })).changes).toEqual([]);
    expect((await service.request('DELETE', `${path}/source`)).status).toBe(200);
    expect(await definitions.webhooks()).toHaveLength(1);
    expect((await definitions.apply(baseFiles)).version).toBe(2);
    expect((await definitions.stored()).commit).toBeUndefined();
    await service.problem(404, 'DELETE', `${path}/source`);
    await service.problem(404, 'POST', `${path}/source/sync`);
  });

  test('shows what was changed without the repository, and takes it back when it is synced by hand', async () => {
    await push(baseFiles);
    await set();
    await service.request('POST', `${path}/webhooks/${await definitions.webhookUid()}/disable`);
    await makeDue();
    await round();
    expect((await definitions.stored()).drift).toHaveLength(1);
    expect((await syncNow()).drift).toHaveLength(1);
    expect((await definitions.stored()).drift).toEqual([]);
  });

  test('tries a commit again that lacked a secret, when it is synced by hand', async () => {
    await push({ ...baseFiles, 'webhooks/alerts.yaml': 'secretName: LATER\n' });
    expect(lines((await set()).sync)).toEqual([
      'webhooks/alerts.yaml:1:13: the team has no secret LATER; set it with PUT /secrets/LATER and the scope team',
    ]);
    await definitions.setSecret('LATER', 'a/secret/of/later');
    await makeDue();
    await round();
    expect((await source()).last_sync?.outcome, 'it was tried a moment ago').toBe('faulty');
    expect(await syncNow()).toMatchObject({ outcome: 'applied' });
  });
});

describe('a repository', () => {
  test.each<[string, { repository?: string; branch?: string; folder?: string }, RegExp]>([
    ['on another host', { repository: 'https://elsewhere.example/acme/site.git' }, /must be on the code host/],
    ['with a credential in its URL', { repository: 'http://a:b@127.0.0.1/acme/site.git' }, /must have no credential/],
    ['that is a path', { repository: '../../etc' }, /must be owner\/repo/],
    ['that is a file', { repository: 'file:///etc/passwd' }, /must be/],
    ['with options in the branch', { branch: '--upload-pack=touch' }, /must be the name of a branch/],
    ['with a branch that is another ref', { branch: 'refs/pull/1/head' }, /must be the name of a branch/],
    ['with a folder above it', { folder: '../other' }, /must not have/],
  ])('%s is refused', async (_name, body, message) => {
    const answer = await service.problem(400, 'PUT', `${path}/source`, { body: { repository: 'acme/a', ...body } });
    expect(answer.errors?.[0]?.message).toMatch(message);
  });

  test('is also named by its URL on the code host', async () => {
    await push(baseFiles);
    const { source: shown } = await set({ repository: `${host.url}/acme/${repo}` });
    expect(shown).toMatchObject({ repository: `acme/${repo}`, url: `${host.url}/acme/${repo}.git` });
  });

  test.each<[string, object, RegExp]>([
    ['that is not there', { repository: 'acme/none' }, /no repository acme\/none/],
    ['without the branch', { branch: 'none' }, /has no branch none/],
  ])('%s leaves the source and the reason', async (_name, more, message) => {
    await push(baseFiles);
    const { sync, source: shown } = await set(more);
    expect(sync).toMatchObject({ outcome: 'unreadable', message: expect.stringMatching(message) });
    expect(shown?.last_sync).toMatchObject({ outcome: 'unreadable' });
  });

  const bomb = ['a: &a [x, x, x, x, x, x, x, x, x]', ...'bcdefghi'].reduce((text, letter, n) =>
    n === 0
      ? letter
      : `${text}\n${letter}: &${letter} [${`*${String.fromCharCode(letter.charCodeAt(0) - 1)}, `.repeat(9)}]`,
  );
  test.each<[string, Parameters<FakeGitHost['replace']>[2], RegExp]>([
    ['with links', { files: filesOf(baseFiles), links: { 'agents/x/agent.md': '/etc/passwd' } }, /symbolic link/],
    [
      'whose folder is a link',
      { files: { 'factory.yaml': factoryFile }, links: { agents: '/etc' } },
      /symbolic link|needs one agent/,
    ],
    ['with submodules', { files: filesOf(baseFiles), submodules: ['skills/s'] }, /submodule/],
    [
      'with files in Git LFS',
      {
        files: {
          ...filesOf(baseFiles),
          'webhooks/a.yaml': 'version https://git-lfs.github.com/spec/v1\noid sha256:0\n',
        },
      },
      /Git LFS/,
    ],
    ['that expands to a million values', { files: { ...filesOf(baseFiles), 'factory.yaml': bomb } }, /anchor|alias/i],
    [
      'with too many files',
      { files: Object.fromEntries(Array.from({ length: 1_001 }, (_, n) => [`skills/s/${n}.md`, ''])) },
      /more than 1000 files/,
    ],
    [
      'with a giant file',
      { files: { ...filesOf(baseFiles), 'agents/a/agent.md': 'x'.repeat(1024 * 1024 + 1) } },
      /too large/,
    ],
    [
      'with more bytes than a definition has',
      {
        files: {
          ...filesOf(baseFiles),
          ...Object.fromEntries([...'abcdefghi'].map((n) => [`skills/s/${n}`, n.repeat(1_000_000)])),
        },
      },
      /more than 8 MB together/,
    ],
    ['that is not UTF-8', { files: { ...filesOf(baseFiles), 'agents/a/agent.md': '\u0000' } }, /NUL/],
    ['without a definition', { files: { 'README.md': 'a' } }, /factory.yaml:1:1: is missing/],
  ])('%s is refused with the file', async (_name, content, message) => {
    await host.replace('acme', repo, content);
    const { sync } = await set();
    expect(sync.outcome).toBe('faulty');
    expect(lines(sync)?.join('\n')).toMatch(message);
    expect(await definitions.webhooks()).toEqual([]);
  });
});

describe('rights', () => {
  test('end with the role of the person who set the source', async () => {
    const person = await newPerson(service, await teamUidOf(service), 'member');
    const good = await push(baseFiles);
    await set({}, person.key);
    expect((await source()).set_by.uid).toBe(person.uid);
    expect((await definitions.stored()).applied_by?.uid).toBe(person.uid);
    await push({ ...baseFiles, 'agents/late/agent.md': '---\nagentType: CUSTOM\n---\n' });
    const asked = host.requests.length;
    await service.request('PATCH', `/teams/${await teamUidOf(service)}/members/${person.uid}`, {
      body: { role: 'viewer' },
    });
    await makeDue();
    await round();
    expect(await source()).toMatchObject({
      applied_commit: good,
      last_sync: { outcome: 'not_allowed', message: expect.stringContaining('became a viewer') },
    });
    expect(host.requests.length, 'the repository is not read any more').toBe(asked);
    expect(await syncNow()).toMatchObject({ outcome: 'not_allowed' });
    expect(await syncNow({ dry_run: true })).toMatchObject({ outcome: 'not_allowed' });
    // Another person takes over.
    expect((await set()).sync).toMatchObject({ outcome: 'applied', version: 2 });
  });

  test.each(['viewer', 'agent', 'other team', 'run token'] as const)('are not those of: %s', async (who) => {
    await push(baseFiles);
    const keys = {
      viewer: () => service.newKey({ role: 'viewer' }),
      agent: () => service.newKey({ kind: 'agent' }),
      'other team': async () => service.otherKey,
      'run token': async () => (await service.startExecution()).runToken,
    };
    const key = await keys[who]();
    const status = { viewer: 403, agent: 403, 'other team': 404, 'run token': 401 }[who];
    const body = { repository: `acme/${repo}` };
    await service.problem(status, 'PUT', `${path}/source`, { key, body });
    await set();
    await service.problem(status, 'POST', `${path}/source/sync`, { key });
    await service.problem(status, 'DELETE', `${path}/source`, { key });
    expect((await source()).repository).toBe(`acme/${repo}`);
  });

  test('do not reach what another team has', async () => {
    const other = await service.request<{ uid: string }>('POST', '/agent/environments', {
      key: service.otherKey,
      body: { config: { name: 'Theirs' } },
    });
    await service.request('PUT', '/secrets/THEIRS', {
      key: service.otherKey,
      body: { value: 'a/long/secret', scope: 'team' },
    });
    const theirs = await service.request<{ uid: string }>('POST', '/factory', {
      key: service.otherKey,
      body: { name: 'T' },
    });
    const webhook = await service.request<{ uid: string }>('POST', `/factory/${theirs.body.uid}/webhooks`, {
      key: service.otherKey,
      body: { name: 'W' },
    });
    await push({
      ...baseFiles,
      'agents/reviewer/agent.md': `---\nenvironmentId: ${other.body.uid}\n---\n`,
      'webhooks/alerts.yaml': 'secretName: THEIRS\n',
      'automations/a/automation.md': automationFile(webhook.body.uid),
    });
    expect(lines((await set()).sync)).toEqual([
      expect.stringMatching(/^agents\/reviewer\/agent\.md:2:.*no such environment/),
      expect.stringMatching(/^automations\/a\/automation\.md:7:.*the factory has no webhook/),
      expect.stringMatching(/^webhooks\/alerts\.yaml:1:.*the team has no secret THEIRS/),
    ]);
  });
});

describe('a GitHub webhook of the factory', () => {
  const secret = 'github-secret-1234';
  const deliver = async (url: string, payload: object, event = 'push') => {
    const raw = JSON.stringify(payload);
    const signature = createHmac('sha256', secret).update(raw).digest('hex');
    const headers = {
      'x-github-event': event,
      'x-github-delivery': randomUUID(),
      'x-hub-signature-256': `sha256=${signature}`,
    };
    return (await service.request('POST', url, { key: null, raw, headers })).status;
  };
  const isDue = async () =>
    (await service.deps.db.query<{ due: boolean }>('SELECT due_at <= clock_timestamp() AS due FROM factory_sources'))[0]
      ?.due;
  /** As if the last sync was long ago. */
  const quiet = () =>
    service.deps.db.query(
      `UPDATE factory_sources SET claimed_at = now() - interval '1 hour', due_at = now() + interval '1 hour'`,
    );

  test('makes a push to the branch sync at once, and no other', async () => {
    await push(baseFiles);
    await set();
    const made = await service.request<{ url: string }>('POST', `${path}/webhooks`, {
      body: { name: 'gh', auth_mode: 'signature', signature_scheme: 'github', secret },
    });
    const repository = { name: repo, full_name: `Acme/${repo}`, default_branch: 'main' };
    await quiet();
    const others: [object, string?][] = [
      [{ ref: 'refs/heads/other', repository }],
      [{ ref: 'refs/tags/main', repository }],
      [{ ref: 'refs/heads/main', repository: { ...repository, full_name: 'acme/another' } }],
      [{ ref: 'refs/heads/main', repository }, 'pull_request'],
      [{ ref: 1, repository: [] }],
    ];
    for (const [payload, event] of others) expect(await deliver(made.body.url, payload, event)).toBe(202);
    expect(await isDue()).toBe(false);
    const commit = await push({ ...baseFiles, 'webhooks/alerts.yaml': undefined });
    expect(await deliver(made.body.url, { ref: 'refs/heads/main', repository })).toBe(202);
    expect(await isDue()).toBe(true);
    await round();
    expect(await source()).toMatchObject({ applied_commit: commit });
    expect((await definitions.webhooks()).map(({ name }) => name)).toEqual(['gh']);
    // A flood of pushes does not make a flood of syncs.
    expect(await deliver(made.body.url, { ref: 'refs/heads/main', repository })).toBe(202);
    expect(await isDue()).toBe(false);
  });
});

describe('of several processes', () => {
  const looks = () => host.requests.filter(({ url }) => url.includes(repo)).length;

  test('one syncs', async () => {
    await push(baseFiles);
    await set();
    await push({ ...baseFiles, 'webhooks/alerts.yaml': undefined });
    await makeDue();
    const before = looks();
    await round();
    const ofOne = looks() - before;
    await push(baseFiles);
    await makeDue();
    const between = looks();
    await Promise.all([round(), round(), round()]);
    expect(looks() - between).toBe(ofOne);
    expect((await definitions.stored()).version).toBe(3);
  });

  test('one that dies between fetch and apply changes nothing, and cannot later', async () => {
    const good = await push(baseFiles);
    await set();
    const lost = await push({ ...baseFiles, 'agents/lost/agent.md': '---\nagentType: CUSTOM\n---\n' });
    await makeDue();
    let wake = () => {};
    const asleep = new Promise<void>((resolve) => {
      wake = resolve;
    });
    let hasRead = () => {};
    const read = new Promise<void>((resolve) => {
      hasRead = resolve;
    });
    const { sourceReader } = service.deps;
    const dying = syncDueSources(
      {
        ...service.deps,
        sourceReader: {
          read: async (...given) => {
            const files = await sourceReader.read(...given);
            hasRead();
            await asleep;
            return files;
          },
        },
      },
      going,
    );
    await read;
    expect(await definitions.stored()).toMatchObject({ version: 1, commit: good });
    await service.problem(409, 'POST', `${path}/source/sync`);
    await makeDue();
    await round();
    expect((await source()).applied_commit, 'the claim is still there').toBe(good);
    // Its claim lapses, and another process applies a newer commit.
    const newer = await push({ ...baseFiles, 'agents/newer/agent.md': '---\nagentType: CUSTOM\n---\n' });
    await service.deps.db.query('UPDATE factory_sources SET claimed_until = now()');
    await round();
    expect(await source()).toMatchObject({ applied_commit: newer });
    wake();
    await dying;
    expect(await source()).toMatchObject({ applied_commit: newer, last_sync: { commit: newer } });
    expect((await definitions.factory()).agents?.map(({ name }) => name)).toEqual(['foreman', 'newer', 'reviewer']);
    expect(lost).not.toBe(newer);
  });

  test('one that reads while the source is set anew stores nothing', async () => {
    await push(baseFiles);
    await set();
    await push({ ...baseFiles, 'agents/lost/agent.md': '---\nagentType: CUSTOM\n---\n' });
    await makeDue();
    const { sourceReader } = service.deps;
    await syncDueSources(
      {
        ...service.deps,
        sourceReader: {
          read: async (...given) => {
            const files = await sourceReader.read(...given);
            await service.request('DELETE', `${path}/source`);
            return files;
          },
        },
      },
      going,
    );
    expect((await definitions.factory()).agents).toHaveLength(2);
    expect(uid).not.toBe('');
  });
});
