/** Tests syncs that a push starts before their regular time, and syncs with several service processes. */
import { createHmac, randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { baseFiles } from '../../../../test/definitions.ts';
import { testSources } from '../../../../test/factory-sources.ts';

const { definitions, factory, host, makeDue, push, readerWith, round, service, set, source } = await testSources();

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
  /** Makes the last sync look old. */
  const quiet = () =>
    service.deps.db.query(
      `UPDATE factory_sources SET claimed_at = now() - interval '1 hour', due_at = now() + interval '1 hour'`,
    );

  test("starts a sync at once after a push to the factory's branch, but not after other pushes", async () => {
    await push(baseFiles);
    await set();
    const createdWebhook = await service.request<{ url: string }>('POST', `${factory.path}/webhooks`, {
      body: { name: 'gh', auth_mode: 'signature', signature_scheme: 'github', secret },
    });
    const repository = { name: 'factories', full_name: 'Acme/factories', default_branch: 'main' };
    await quiet();
    const others: [object, string?][] = [
      [{ ref: 'refs/heads/other', repository }],
      [{ ref: 'refs/tags/main', repository }],
      [{ ref: 'refs/heads/main', repository: { ...repository, full_name: 'acme/another' } }],
      [{ ref: 'refs/heads/main', repository }, 'pull_request'],
      [{ ref: 1, repository: [] }],
      [{ ref: { length: { toString: '' } }, repository }],
    ];
    for (const [payload, event] of others) expect(await deliver(createdWebhook.body.url, payload, event)).toBe(202);
    expect(await isDue()).toBe(false);
    const commit = await push({ ...baseFiles, 'webhooks/alerts.yaml': undefined });
    // The service treats signed bytes that it has already received as a duplicate, so each push has another commit.
    expect(await deliver(createdWebhook.body.url, { ref: 'refs/heads/main', repository, after: commit })).toBe(202);
    expect(await isDue()).toBe(true);
    await round();
    expect(await source()).toMatchObject({ applied_commit: commit });
    expect((await definitions.webhooks()).map(({ name }) => name)).toEqual(['gh']);
    // A push soon after a sync does not make the source due, so many pushes cause only a few syncs.
    expect(await deliver(createdWebhook.body.url, { ref: 'refs/heads/main', repository, after: 'another' })).toBe(202);
    expect(await isDue()).toBe(false);
  });
});

describe('several processes', () => {
  const looks = () => host.requests.filter(({ url }) => url.includes('factories')).length;

  test('sync a due source only once together, not once each', async () => {
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

  test('change nothing if a process dies between fetch and apply', async () => {
    const good = await push(baseFiles);
    await set();
    const lost = await push({ ...baseFiles, 'agents/lost/agent.md': '---\nagentType: CUSTOM\n---\n' });
    await makeDue();
    const { promise: asleep, resolve: wake } = Promise.withResolvers<void>();
    const { promise: read, resolve: hasRead } = Promise.withResolvers<void>();
    const dying = round({
      sourceReader: readerWith(async () => {
        hasRead();
        await asleep;
      }),
    });
    await read;
    expect(await definitions.stored()).toMatchObject({ version: 1, commit: good });
    await service.problem(409, 'POST', `${factory.path}/source/sync`);
    await makeDue();
    await round();
    expect((await source()).applied_commit, 'the claim is still there').toBe(good);
    // The claim of the process expires, and another process applies a newer commit.
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

  test('store nothing if the source is removed during the read', async () => {
    await push(baseFiles);
    await set();
    await push({ ...baseFiles, 'agents/lost/agent.md': '---\nagentType: CUSTOM\n---\n' });
    await makeDue();
    await round({ sourceReader: readerWith(() => service.request('DELETE', `${factory.path}/source`)) });
    expect((await definitions.factory()).agents).toHaveLength(2);
  });
});
