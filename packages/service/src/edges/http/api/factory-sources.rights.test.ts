/** Tests who may change the sources of factories, and which rights a sync has from the person who set the source. */
import { describe, expect, test } from 'vitest';
import { automationFile, baseFiles } from '../../../../test/definitions.ts';
import { faultsOf, testSources } from '../../../../test/factory-sources.ts';
import { newPerson, teamUidOf } from '../../../../test/people.ts';

const { definitions, factory, host, makeDue, push, readerWith, round, service, set, source, syncNow } =
  await testSources();

describe('the right to change and sync a source', () => {
  test('ends when the person who set the source loses the role', async () => {
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
      last_sync: { outcome: 'not_allowed', message: expect.stringContaining('is now a viewer') },
    });
    expect(host.requests.length, 'the repository is not read any more').toBe(asked);
    expect(await syncNow()).toMatchObject({ outcome: 'not_allowed' });
    expect(await syncNow({ dry_run: true })).toMatchObject({ outcome: 'not_allowed' });
    // Another person sets the source.
    expect((await set()).sync).toMatchObject({ outcome: 'applied', version: 2 });
  });

  test('lets the person accept later commits, with texts that others applied before', async () => {
    const skill = { 'skills/tidy/SKILL.md': '---\nname: tidy\ndescription: Tidies\n---\nTidy up.\n' };
    const colleague = await newPerson(service, await teamUidOf(service), 'member');
    const person = await newPerson(service, await teamUidOf(service), 'member');
    await service.ok('PUT', `${factory.path}/definition`, {
      key: colleague.key,
      body: { files: Object.entries({ ...baseFiles, ...skill }).map(([path, content]) => ({ path, content })) },
    });
    await push({ ...baseFiles, ...skill, 'agents/late/agent.md': '---\nagentType: CUSTOM\n---\n' });
    await set({}, person.key);
    const open = async (uid: string) =>
      (
        await service.deps.db.query<{ author: { uid: string } }>(
          `SELECT o.author FROM content_revisions c CROSS JOIN LATERAL open_authors(c.kind, c.uid, c.texts, 'user', $1) o
           WHERE c.kind = 'definition' AND c.uid = $2 AND c.superseded_at IS NULL`,
          [uid, factory.path.split('/').at(-1)],
        )
      ).map(({ author }) => author.uid);
    expect(await open(person.uid)).toEqual([]);
    expect(await open('somebody else')).toContain(colleague.uid);
  });

  test('may end while the repository is read, and the claim of the source is then removed', async () => {
    const person = await newPerson(service, await teamUidOf(service), 'member');
    const good = await push(baseFiles);
    await set({}, person.key);
    await push({ ...baseFiles, 'agents/late/agent.md': '---\nagentType: CUSTOM\n---\n' });
    await makeDue();
    const member = `/teams/${await teamUidOf(service)}/members/${person.uid}`;
    await round({ sourceReader: readerWith(() => service.request('DELETE', member)) });
    expect(await source()).toMatchObject({ applied_commit: good, last_sync: { outcome: 'not_allowed' } });
    expect(await definitions.stored()).toMatchObject({ version: 1, commit: good });
    const claims = await service.deps.db.query('SELECT FROM factory_sources WHERE claim IS NOT NULL');
    expect(claims).toEqual([]);
  });

  test.each(['viewer', 'agent', 'other team', 'run token'] as const)('is not given to: %s', async (who) => {
    await push(baseFiles);
    const keys = {
      viewer: () => service.newKey({ role: 'viewer' }),
      agent: () => service.newKey({ kind: 'agent' }),
      'other team': async () => service.otherKey,
      'run token': async () => (await service.startExecution()).runToken,
    };
    const key = await keys[who]();
    const status = { viewer: 403, agent: 403, 'other team': 404, 'run token': 401 }[who];
    const body = { repository: 'acme/factories' };
    await service.problem(status, 'PUT', `${factory.path}/source`, { key, body });
    await set();
    await service.problem(status, 'POST', `${factory.path}/source/sync`, { key });
    await service.problem(status, 'DELETE', `${factory.path}/source`, { key });
    expect((await source()).repository).toBe('acme/factories');
  });

  test('does not include things of another team', async () => {
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
    expect(faultsOf((await set()).sync)).toEqual([
      expect.stringMatching(
        /^agents\/reviewer\/agent\.md:2:16: there is no such environment, or it belongs to another team/,
      ),
      expect.stringMatching(/^automations\/a\/automation\.md:7:.*the factory has no webhook/),
      expect.stringMatching(/^webhooks\/alerts\.yaml:1:.*the team has no secret THEIRS/),
    ]);
  });
});
