// biome-ignore-all lint/suspicious/noTemplateCurlyInString: variables of definition files have this form
import type { Environment } from '@runyard/contract/environments/environments';
import type { ApplyDefinitionResponse, CreateFromFilesResponse } from '@runyard/contract/factories/factory-definitions';
import { beforeEach, describe, expect, test } from 'vitest';
import { baseFiles, type Files, testDefinitions, toBody } from '../../../../test/definitions.ts';
import { openTestService } from '../../../../test/service.ts';

const service = await openTestService();
const { apply, automations, factory, faultsOf, open, setSecret, stored, webhooks } = testDefinitions(service);

let path = '';
beforeEach(async () => {
  path = await open();
  await service.deps.db.query('DELETE FROM environments');
});

const automation = `---
environment: ci
triggers:
  - provider: webhook
    event: received
    filter:
      webhooks: [alerts]
---

Look at the alert.
`;
const files: Files = {
  ...baseFiles,
  'environments/ci.yaml': 'docker_image: node:24\nsecrets: [{name: ALERTS}]\nvariables: {STAGE: test}\n',
  'automations/triage/automation.md': automation,
};

const environments = async (): Promise<Environment[]> =>
  (await service.request<{ environments: Environment[] }>('GET', '/agent/environments')).body.environments;
const newEnvironment = (name: string) =>
  service.request<Environment>('POST', '/agent/environments', { body: { config: { name } } });

describe('a definition whose files name each other', () => {
  test('is applied in one step, and a second apply changes nothing', async () => {
    const plan = await apply(files, { dry_run: true });
    expect([await environments(), await webhooks()]).toEqual([[], []]);
    expect(await apply(files)).toMatchObject({ version: 1, changes: plan.changes, problems: [] });
    const [environment] = await environments();
    const [webhook] = await webhooks();
    expect(environment?.config).toEqual({
      name: 'ci',
      docker_image: 'node:24',
      secrets: [{ name: 'ALERTS' }],
      variables: { STAGE: 'test' },
    });
    expect(await automations()).toMatchObject([
      { config: { environment_id: environment?.uid }, triggers: [{ filter: { webhook_ids: [webhook?.uid] } }] },
    ]);
    expect(await apply(files)).toMatchObject({ version: 2, changes: [], drift: [] });
    expect((await stored()).drift).toEqual([]);
    expect((await environments()).map(({ uid }) => uid)).toEqual([environment?.uid]);
  });

  test('keeps the UID of an environment that changes, reverts changes by hand, and deletes an environment without a file', async () => {
    await apply(files);
    const [{ uid } = { uid: '' }] = await environments();
    await service.request('PUT', `/agent/environments/${uid}`, { body: { config: { name: 'ci' } } });
    expect((await stored()).drift).toMatchObject([{ kind: 'environment', name: 'ci', action: 'change' }]);
    const changed = { ...files, 'environments/ci.yaml': 'docker_image: node:26\n' };
    expect(await apply(changed)).toMatchObject({
      changes: [{ kind: 'environment', name: 'ci', action: 'change' }],
      drift: [{ kind: 'environment', name: 'ci', action: 'change' }],
    });
    expect(await environments()).toMatchObject([{ uid, config: { name: 'ci', docker_image: 'node:26' } }]);
    const without = { ...files, 'environments/ci.yaml': undefined, 'automations/triage/automation.md': undefined };
    expect((await apply(without)).changes).toContainEqual({ kind: 'environment', name: 'ci', action: 'delete' });
    expect(await environments()).toEqual([]);
  });

  test('may name an environment of the team, if only one has the name', async () => {
    const named = { ...files, 'environments/ci.yaml': undefined };
    const at = 'automations/triage/automation.md:2: environment: ';
    expect(await faultsOf(named)).toEqual([
      `${at}there is no file environments/ci.yaml, and the team has no environment ci`,
    ]);
    const { body } = await newEnvironment('ci');
    await apply(named);
    expect(await automations()).toMatchObject([{ config: { environment_id: body.uid } }]);
    expect(await apply(named)).toMatchObject({ changes: [], drift: [] });
    await newEnvironment('ci');
    expect(await faultsOf(named)).toEqual([expect.stringContaining('the team has 2 environments ci')]);
    await apply({ ...named, 'automations/triage/automation.md': undefined });
    expect(await environments()).toHaveLength(2);
  });

  test('has faults for names without a file, and for secrets that the caller may not give to an environment', async () => {
    const missing = { ...files, 'automations/triage/automation.md': automation.replace('[alerts]', '[alarts]') };
    expect(await faultsOf(missing)).toEqual([
      expect.stringMatching(/automation\.md:7: .*there is no webhooks\/alarts\.yaml; did you mean alerts/),
    ]);
    await setSecret('MINE', 'a-secret-of-mine', 'personal');
    expect(await faultsOf({ ...files, 'environments/ci.yaml': 'secrets: [{name: MINE}]\n' })).toEqual([
      expect.stringContaining('environments/ci.yaml:1: secrets: there is no secret MINE of the team'),
    ]);
    expect(await environments()).toEqual([]);
  });

  test('an automation of the API cannot name a webhook by a file', async () => {
    await apply(files);
    const body = {
      name: 'own',
      prompt: 'p',
      triggers: [{ provider: 'webhook', event: 'received', filter: { webhooks: ['alerts'] } }],
    };
    await service.problem(400, 'POST', `${path}/automations`, { body });
  });
});

describe('one definition with variables', () => {
  const withVariables = {
    ...files,
    'variables.yaml': 'variables:\n  name: {}\n  image: {default: "node:24"}\n  stages: {default: true}\n',
    'factory.yaml': files['factory.yaml']?.replace('name: Billing', 'name: ${{ variables.name }}'),
    'environments/ci.yaml': 'docker_image: ${{ variables.image }}\n',
    'automations/triage/automation.md': automation.replace(
      'environment',
      'enabled: ${{ variables.stages }}\nenvironment',
    ),
  } as Files;

  test('applies to staging and to production without a change, and each factory keeps its values', async () => {
    const staging = await apply(withVariables, { variables: { name: 'Staging', stages: 'false' } });
    expect(staging.changes).not.toEqual([]);
    expect((await factory()).name).toBe('Staging');
    expect((await automations())[0]?.enabled).toBe(false);
    const { body } = await service.request<{ uid: string }>('POST', '/factory', { body: { name: 'Empty' } });
    const production = { variables: { name: 'Production', image: 'node:26' } };
    const answer = await service.request<ApplyDefinitionResponse>('PUT', `/factory/${body.uid}/definition`, {
      body: toBody(withVariables, production),
    });
    expect(answer.body.version, answer.text).toBe(1);
    expect((await environments()).map(({ config }) => config.docker_image).sort()).toEqual(['node:24', 'node:26']);
    // An apply without values keeps those of its factory.
    expect(await apply(withVariables)).toMatchObject({ changes: [], drift: [] });
    expect((await stored()).variables).toEqual({ name: 'Staging', stages: 'false' });
  });

  test('needs a value for a variable without a default', async () => {
    expect(await faultsOf(withVariables)).toEqual([
      expect.stringContaining('variables.yaml:1: the variable name has no default and no value'),
    ]);
  });
});

describe('a factory that is created from its files', () => {
  const create = (given: Files, more: object = {}, key = service.key) =>
    service.request<CreateFromFilesResponse>('POST', '/factory-files/apply', { key, body: toBody(given, more) });
  const factories = async () => (await service.request<{ factories: object[] }>('GET', '/factory')).body.factories;

  test('exists whole after one request, and not at all after a fault or a dry run', async () => {
    const before = (await factories()).length;
    expect((await create(files, { dry_run: true })).body).not.toHaveProperty('factory_uid');
    expect((await create({ ...files, 'webhooks/alerts.yaml': 'secretName: NONE\n' })).status).toBe(422);
    expect([await factories(), await environments()]).toMatchObject([{ length: before }, []]);
    const { body } = await create(files);
    expect(body).toMatchObject({ version: 1, problems: [] });
    const found = await service.request<{ name: string }>('GET', `/factory/${body.factory_uid}`);
    expect(found.body.name).toBe('Billing');
    const { detail } = await service.problem(409, 'POST', '/factory-files/apply', { body: toBody(files) });
    expect(detail).toContain(`PUT /factory/${body.factory_uid}/definition`);
    expect(await factories()).toHaveLength(before + 1);
  });

  test.each(['viewer', 'agent'] as const)('is not created by: %s', async (who) => {
    const key = await service.newKey(who === 'agent' ? { kind: 'agent' } : { role: 'viewer' });
    expect((await create(files, {}, key)).status).toBe(403);
  });
});

test('schedule_ids name schedules of the team, also by a variable, and a notice names each id that the team does not have', async () => {
  const body = { name: 'Nightly', cron_schedule: '@daily', prompt: 'Look.', enabled: true };
  const { id } = (await service.request<{ id: string }>('POST', '/agent/schedules', { body })).body;
  const listening: Files = {
    ...baseFiles,
    'variables.yaml': 'variables:\n  nightly: {}\n',
    'automations/look/automation.md':
      '---\ntriggers:\n  - provider: schedule\n    event: cron_fired\n    filter:\n      schedule_ids: ["${{ variables.nightly }}", of-the-public-service]\n---\n\nLook.\n',
  };
  const missing = 'the team has no schedule of-the-public-service';
  const notice = { file: 'automations/look/automation.md', line: 6, message: expect.stringContaining(missing) };
  const variables = { nightly: id };
  expect(await apply(listening, { variables })).toMatchObject({
    notices: [notice],
    problems: [{ automation: 'look', message: `triggers[0]: ${missing}` }],
  });
  expect(await automations()).toMatchObject([
    { triggers: [{ filter: { schedule_ids: [id, 'of-the-public-service'] } }] },
  ]);
  expect(await stored()).toMatchObject({ drift: [], notices: [notice] });
  const plan = async (key?: string) =>
    (
      await service.request<ApplyDefinitionResponse>('POST', `${path}/definition/plan`, {
        ...(key === undefined ? {} : { key }),
        body: toBody(listening, { variables: { nightly: '01900000-0000-7000-8000-000000000000' } }),
      })
    ).body.notices;
  expect(await plan()).toHaveLength(2);
  // An agent key, which a program of CI may have, learns nothing about ids.
  expect(await plan(await service.newKey({ kind: 'agent' }))).toEqual([]);
});
