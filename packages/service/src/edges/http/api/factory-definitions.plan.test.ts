import type { ApplyDefinitionResponse } from '@runyard/contract/factories/factory-definitions';
import type { CreateKeyResponse } from '@runyard/contract/team/keys';
import { beforeEach, describe, expect, test } from 'vitest';
import { baseFiles, type Files, testDefinitions, toBody } from '../../../../test/definitions.ts';
import { openTestService } from '../../../../test/service.ts';

const service = await openTestService();
const { apply, open, setSecret, stored, webhooks } = testDefinitions(service);

let path = '';
beforeEach(async () => {
  path = await open();
});

const plan = async (files: Files, key: string) =>
  await service.request<ApplyDefinitionResponse & { errors?: { path: string; message: string }[] }>(
    'POST',
    `${path}/definition/plan`,
    { key, body: toBody(files) },
  );
const faultsOf = async (files: Files, key: string) =>
  (await plan(files, key)).body.errors?.map(({ message }) => message);
const newKey = async (body: object = {}, key = service.key) =>
  await service.request<CreateKeyResponse>('POST', '/keys', {
    key,
    body: { name: 'CI', kind: 'agent', limited_to: 'definition_plans', ...body },
  });

describe('a plan', () => {
  test.each(['viewer', 'agent', 'limited'] as const)(
    'is made with the key of: %s, and changes nothing',
    async (who) => {
      const keys = {
        viewer: () => service.newKey({ role: 'viewer' }),
        agent: () => service.newKey({ kind: 'agent' }),
        limited: async () => (await newKey()).body.key,
      };
      const key = await keys[who]();
      await apply(baseFiles);
      const wanted = {
        ...baseFiles,
        'agents/reviewer/agent.md': '---\nagentType: REVIEW\n---\n\nReview well.\n',
        'environments/ci.yaml': 'secrets: [{name: ALERTS}]\n',
        'automations/a/automation.md':
          '---\nenvironment: ci\ntriggers:\n  - {provider: webhook, event: received, filter: {webhooks: [alerts]}}\n---\n\nLook.\n',
      };
      const { body } = await plan(wanted, key);
      expect(body).toMatchObject({ version: 1, dry_run: true, drift: [] });
      expect(body.changes.map(({ kind, name, action }) => `${action} ${kind} ${name}`)).toEqual([
        'change agent reviewer',
        'create automation a',
        'create environment ci',
      ]);
      expect(await stored()).toMatchObject({ version: 1, drift: [] });
      const variables = { 'variables.yaml': 'variables: {host: {}}\n' };
      expect((await plan({ ...wanted, ...variables }, key)).status).toBe(422);
      await apply({ ...baseFiles, ...variables }, { variables: { host: 'mac' } });
      expect((await plan({ ...wanted, ...variables }, key)).status).toBe(200);
      expect((await apply(wanted, { dry_run: true })).changes).toEqual(body.changes);
    },
  );

  test('is refused for another team, for a run, and without a key', async () => {
    const { runToken } = await service.startExecution();
    expect((await plan(baseFiles, service.otherKey)).status).toBe(404);
    expect((await plan(baseFiles, runToken)).status).toBe(401);
    expect(
      (await service.request('POST', `${path}/definition/plan`, { key: null, body: toBody(baseFiles) })).status,
    ).toBe(401);
  });

  test('has the same faults for a thing of somebody else and for a thing that does not exist', async () => {
    const viewer = await service.newKey({ role: 'viewer' });
    const limited = (await newKey()).body.key;
    await setSecret('THEIRS_OF_TEAM', 'one-secret-of-the-team');
    await setSecret('MINE', 'a-secret-of-mine', 'personal');
    await service.request('PUT', '/secrets/OTHERS', {
      key: service.otherKey,
      body: { value: 'a-secret-of-others', scope: 'team' },
    });
    const { body: environment } = await service.request<{ uid: string }>('POST', '/agent/environments', {
      key: service.otherKey,
      body: { config: { name: 'Theirs' } },
    });
    const withWebhook = (name: string) => ({ ...baseFiles, 'webhooks/alerts.yaml': `secretName: ${name}\n` });
    const ofAgent = (line: string) => ({ ...baseFiles, 'agents/reviewer/agent.md': `---\n${line}\n---\n` });
    const probes: [existing: Files, missing: Files, name: string, other: string][] = [
      [withWebhook('MINE'), withWebhook('NONE'), 'MINE', 'NONE'],
      [withWebhook('OTHERS'), withWebhook('NONE'), 'OTHERS', 'NONE'],
      [ofAgent('secrets: [MINE]'), ofAgent('secrets: [NONE]'), 'MINE', 'NONE'],
      [ofAgent('secrets: [OTHERS]'), ofAgent('secrets: [NONE]'), 'OTHERS', 'NONE'],
      [ofAgent('environment: Theirs'), ofAgent('environment: Nowhere'), 'Theirs', 'Nowhere'],
      [
        ofAgent(`environmentId: ${environment.uid}`),
        ofAgent(`environmentId: ${'x'.repeat(22)}`),
        environment.uid,
        'x'.repeat(22),
      ],
    ];
    for (const key of [viewer, limited])
      for (const [existing, missing, name, other] of probes) {
        const [seen = [], absent = []] = [await faultsOf(existing, key), await faultsOf(missing, key)];
        if (key === viewer) expect(seen.length).toBeGreaterThan(0);
        expect(seen.map((message) => message.replaceAll(name, '*'))).toEqual(
          absent.map((message) => message.replaceAll(other, '*')),
        );
      }
  });

  test('tells nothing about the values of secrets', async () => {
    const key = await service.newKey({ role: 'viewer' });
    await apply(baseFiles);
    await setSecret('SHORT', 'two words, not in a URL');
    await setSecret('SAME', 'a/secret/of/alerts');
    for (const name of ['SHORT', 'SAME']) {
      const { status, body } = await plan({ ...baseFiles, 'webhooks/alerts.yaml': `secretName: ${name}\n` }, key);
      expect([status, body.changes, body.drift]).toEqual([
        200,
        [
          {
            kind: 'webhook',
            name: 'alerts',
            action: 'change',
            members: [{ member: 'secretName', before: 'ALERTS', after: name }],
          },
        ],
        [],
      ]);
    }
  });

  test('of 10,000 files is refused before they are read', async () => {
    const key = (await newKey()).body.key;
    const files = Object.fromEntries(
      Array.from({ length: 10_000 }, (_, n) => [`webhooks/w${n}.yaml`, '['.repeat(100)]),
    );
    const before = process.threadCpuUsage();
    for (const [method, route] of [
      ['POST', '/plan'],
      ['PUT', ''],
    ] as const) {
      const body = toBody({ ...baseFiles, ...files });
      await service.problem(400, method, `${path}/definition${route}`, {
        key: method === 'PUT' ? service.key : key,
        body,
      });
    }
    const { user, system } = process.threadCpuUsage(before);
    expect((user + system) / 1000).toBeLessThan(3_000);
  });

  test('does not read hostile YAML in the thread of the service', async () => {
    const key = (await newKey()).body.key;
    const hostile = Object.fromEntries(
      Array.from({ length: 7 }, (_, n) => [`webhooks/w${n}.yaml`, '['.repeat(32 * 1024)]),
    );
    await plan(baseFiles, key);
    const before = process.threadCpuUsage();
    expect((await plan({ ...baseFiles, ...hostile }, key)).body.errors).toHaveLength(7);
    const { user, system } = process.threadCpuUsage(before);
    expect((user + system) / 1000).toBeLessThan(500);
  });
});

describe('a key that is limited to plans', () => {
  test('is refused everywhere else, also as the key of a worker', async () => {
    const made = await newKey();
    expect(made.body).toMatchObject({ kind: 'agent', limited_to: 'definition_plans' });
    const { key } = made.body;
    for (const [method, route, body] of [
      ['GET', '/agent/runs', undefined],
      ['GET', '/factory', undefined],
      ['GET', `${path}/definition`, undefined],
      ['GET', '/secrets', undefined],
      ['POST', '/agent/runs', { prompt: 'Go.' }],
      ['PUT', `${path}/definition`, toBody(baseFiles)],
      ['POST', '/keys', { name: 'more', kind: 'agent' }],
    ] as const) {
      const { detail } = await service.problem(403, method, route, { key, ...(body ? { body } : {}) });
      expect(detail).toContain('limited to definition_plans');
    }
    expect(await service.deps.keys.authenticateWorker(key)).toBeNull();
    expect((await service.request('POST', '/factory-files/validate', { key, body: toBody(baseFiles) })).status).toBe(
      200,
    );
    expect(await webhooks()).toEqual([]);
  });

  test('is an agent key, and is listed with its limit', async () => {
    expect((await newKey({ kind: 'personal' })).status).toBe(400);
    const { uid } = (await newKey()).body;
    const { body } = await service.request<{ keys: { uid: string; limited_to?: string }[] }>('GET', '/keys');
    expect(body.keys.find((each) => each.uid === uid)?.limited_to).toBe('definition_plans');
  });
});
