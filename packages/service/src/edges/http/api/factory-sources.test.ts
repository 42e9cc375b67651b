/** Tests factories that take their definition from a private repository on a real git host, over the real API. */
import { describe, expect, test } from 'vitest';
import { automationFile, baseFiles, factoryFile, filesOf, toBody } from '../../../../test/definitions.ts';
import { faultsOf, testSources } from '../../../../test/factory-sources.ts';

const { definitions, factory, host, makeDue, push, readerWith, round, service, set, source, syncNow } =
  await testSources();

const names = async () => (await definitions.automations()).map(({ name }) => name);

describe('a source', () => {
  test('applies the present commit of a private repository, and each commit that is pushed later', async () => {
    const first = await push(baseFiles);
    const { sync, source: shown } = await set();
    expect(sync).toMatchObject({ outcome: 'applied', commit: first, version: 1 });
    expect(shown).toMatchObject({ repository: 'acme/factories', applied_commit: first, set_by: { type: 'user' } });
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

  test('uses only the files of its branch and folder, and ignores other files of the repository', async () => {
    await host.replace('acme', 'factories', { files: { 'README.md': 'a' } });
    await host.replace('acme', 'factories', {
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

  test('follows a forced push to an unrelated history', async () => {
    await push(baseFiles);
    await set();
    const other = await push({ ...baseFiles, 'factory.yaml': factoryFile.replace('Billing', 'Other') });
    const again = await push(baseFiles);
    await makeDue();
    await round();
    expect(await source()).toMatchObject({ applied_commit: again });
    expect(again).not.toBe(other);
  });

  test('makes no new version if a commit does not change the definition', async () => {
    await push(baseFiles);
    await set();
    const later = await host.commit('acme', 'factories', { 'src/main.c': 'int main() {}' });
    expect(await syncNow()).toMatchObject({ outcome: 'applied', version: 1, changes: [] });
    expect(await source()).toMatchObject({ applied_commit: later });
  });

  test('shows the plan of a dry run and changes nothing, even before the source is configured', async () => {
    const commit = await push(baseFiles);
    const planned = await set({ dry_run: true });
    expect(planned.source).toBeUndefined();
    expect(planned.sync).toMatchObject({ outcome: 'applied', dry_run: true, version: 0, commit });
    expect(planned.sync.changes.map(({ kind }) => kind)).toContain('webhook');
    await service.problem(404, 'GET', `${factory.path}/source`);
    await set();
    await push({ 'factory.yaml': factoryFile, 'agents/foreman/agent.md': baseFiles['agents/foreman/agent.md'] });
    const later = await syncNow({ dry_run: true });
    expect(later.changes.map(({ action, kind, name }) => `${action} ${kind} ${name}`)).toEqual([
      'delete agent reviewer',
      'delete webhook alerts',
    ]);
    expect(await definitions.webhooks()).toHaveLength(1);
  });

  test('is not saved if the branch has moved since the plan, and the save ignores a push that arrives meanwhile', async () => {
    const planned = await push(baseFiles);
    expect((await set({ dry_run: true })).sync).toMatchObject({ outcome: 'applied', commit: planned });
    const evil = { ...baseFiles, 'agents/evil/agent.md': '---\nagentType: CUSTOM\n---\n' };
    const moved = await push(evil);
    const { sync } = await set({ expected_commit: planned });
    expect(sync).toMatchObject({ outcome: 'superseded', commit: moved, changes: [] });
    expect(sync.message).toContain(`${planned} was expected`);
    await service.problem(404, 'GET', `${factory.path}/source`);
    await service.problem(404, 'GET', `${factory.path}/definition`);
    await service.problem(400, 'PUT', `${factory.path}/source`, {
      body: { repository: 'acme/factories', expected_commit: 'main' },
    });

    const good = await push(baseFiles);
    const unreadable = await set({ repository: 'acme/none', expected_commit: good });
    expect(unreadable).toMatchObject({
      sync: { outcome: 'unreadable', message: expect.stringContaining('acme/none') },
    });
    await service.problem(404, 'GET', `${factory.path}/source`);
    const { sourceReader } = service.deps;
    Object.assign(service.deps, { sourceReader: readerWith(() => push(evil)) });
    try {
      expect((await set({ expected_commit: good })).sync).toMatchObject({ outcome: 'applied', commit: good });
    } finally {
      Object.assign(service.deps, { sourceReader });
    }
    const agents = async () => (await definitions.factory()).agents?.map(({ name }) => name);
    expect(await agents()).toEqual(['foreman', 'reviewer']);
    await makeDue();
    await round();
    expect(await agents(), 'the push happened').toEqual(['evil', 'foreman', 'reviewer']);
  });

  test('blocks applies of files by people, but not their dry runs, until the source is removed', async () => {
    await push(baseFiles);
    await set();
    const refused = await service.problem(409, 'PUT', `${factory.path}/definition`, { body: toBody(baseFiles) });
    expect(refused.detail).toContain(`takes its definition from acme/factories`);
    expect((await definitions.apply(baseFiles, { dry_run: true })).changes).toEqual([]);
    expect((await service.request('DELETE', `${factory.path}/source`)).status).toBe(200);
    expect(await definitions.webhooks()).toHaveLength(1);
    expect((await definitions.apply(baseFiles)).version).toBe(2);
    expect((await definitions.stored()).commit).toBeUndefined();
    await service.problem(404, 'DELETE', `${factory.path}/source`);
    await service.problem(404, 'POST', `${factory.path}/source/sync`);
  });

  test('shows changes that were made without the repository, and reverts them in a manual sync', async () => {
    await push(baseFiles);
    await set();
    await service.request('POST', `${factory.path}/webhooks/${await definitions.webhookUid()}/disable`);
    await makeDue();
    await round();
    expect((await definitions.stored()).drift).toHaveLength(1);
    expect((await syncNow()).drift).toHaveLength(1);
    expect((await definitions.stored()).drift).toEqual([]);
  });

  test('reverts no changes in the first sync after its repository could not be read for a while', async () => {
    await push(baseFiles);
    await set();
    await service.request('POST', `${factory.path}/webhooks/${await definitions.webhookUid()}/disable`);
    const { db } = service.deps;
    await db.query(`UPDATE factory_sources SET repo = 'away'`);
    await makeDue();
    await round();
    expect((await source()).last_sync?.outcome).toBe('unreadable');
    await db.query(`UPDATE factory_sources SET repo = 'factories'`);
    await makeDue();
    await round();
    expect((await source()).last_sync).toMatchObject({ outcome: 'applied' });
    expect((await definitions.stored()).drift).toHaveLength(1);
  });

  test('applies a commit that failed because of a missing secret when a person syncs the source again', async () => {
    await push({ ...baseFiles, 'webhooks/alerts.yaml': 'secretName: LATER\n' });
    expect(faultsOf((await set()).sync)).toEqual([
      'webhooks/alerts.yaml:1:13: the team has no secret LATER; set it with PUT /secrets/LATER and the scope team',
    ]);
    await definitions.setSecret('LATER', 'a/secret/of/later');
    await makeDue();
    await round();
    expect((await source()).last_sync?.outcome, 'it was tried a moment ago').toBe('faulty');
    expect(await syncNow()).toMatchObject({ outcome: 'applied' });
  });
});

test.each<[string, { repository?: string; branch?: string; folder?: string }, RegExp]>([
  ['repository on another host', { repository: 'https://elsewhere.example/acme/a.git' }, /must be on the code host/],
  ['branch with options', { branch: '--upload-pack=touch' }, /must be the name of a branch/],
  ['branch that is another ref', { branch: 'refs/pull/1/head' }, /must be the name of a branch/],
  ['folder above the repository', { folder: '../other' }, /must not have/],
])('refuses a %s', async (_name, body, message) => {
  const answer = await service.problem(400, 'PUT', `${factory.path}/source`, {
    body: { repository: 'acme/a', ...body },
  });
  expect(answer.errors?.[0]?.message).toMatch(message);
});

test('is saved even if its repository cannot be read, and shows the reason', async () => {
  const { sync, source: shown } = await set({ repository: `${host.url}/acme/none` });
  expect(sync).toMatchObject({ outcome: 'unreadable', message: expect.stringMatching(/no repository acme\/none/) });
  expect(shown).toMatchObject({ repository: 'acme/none', last_sync: { outcome: 'unreadable' } });
});
