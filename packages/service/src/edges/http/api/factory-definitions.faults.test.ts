import type { Factory } from '@runyard/contract/factories/factories';
import type { Webhook } from '@runyard/contract/webhooks/webhooks';
import { beforeEach, describe, expect, test } from 'vitest';
import { automationFile, baseFiles, type Files, factoryFile, testDefinitions } from '../../../../test/definitions.ts';
import { openTestService } from '../../../../test/service.ts';

const service = await openTestService();

const { apply, faultsOf, factory, webhooks, webhookUid, setSecret, stored, open } = testDefinitions(service);

let path = '';
beforeEach(async () => {
  path = await open();
});

describe('a definition with faults', () => {
  const agentWith = (lines: string) => ({ ...baseFiles, 'agents/reviewer/agent.md': `---\n${lines}\n---\n` });
  const none = 'x'.repeat(22);

  test.each<[string, Files, string[]]>([
    [
      'of the files',
      { ...baseFiles, 'webhooks/alerts.yaml': 'secretNam: ALERTS\n' },
      ['webhooks/alerts.yaml:1: secretName is missing', expect.stringContaining('did you mean secretName?')],
    ],
    [
      'without the secret',
      { ...baseFiles, 'webhooks/alerts.yaml': 'enabled: true\nsecretName: NONE\n' },
      ['webhooks/alerts.yaml:2: the team has no secret NONE; set it with PUT /secrets/NONE and the scope team'],
    ],
    [
      'with a secret that no URL can have',
      { ...baseFiles, 'webhooks/alerts.yaml': 'authMode: url_token\nsecretName: ALERTS\n' },
      [expect.stringMatching(/^webhooks\/alerts\.yaml:2: the value of the secret ALERTS must be URL-safe/)],
    ],
    [
      'with an unknown environment',
      agentWith(`environmentId: ${none}`),
      [expect.stringMatching(/^agents\/reviewer\/agent\.md:2: there is no such environment/)],
    ],
    [
      'with an unknown model of all agents',
      { ...baseFiles, 'factory.yaml': factoryFile.replace('runbook', 'none') },
      [expect.stringMatching(/^factory\.yaml:5: /)],
    ],
    [
      'with an unknown secret of an agent',
      agentWith('secrets: [NONE]'),
      [expect.stringMatching(/^agents\/reviewer\/agent\.md:2: there is no secret NONE/)],
    ],
    [
      'with a webhook that the factory does not have',
      { ...baseFiles, 'automations/a/automation.md': automationFile(none) },
      [expect.stringMatching(/^automations\/a\/automation\.md:7: the factory has no webhook x{22}/)],
    ],
    [
      'with instructions that no run may have, behind an agent with the same configuration',
      {
        ...baseFiles,
        'agents/reviewer/agent.md': '---\n---\n\nReview.\n',
        'agents/talker/agent.md': `---\n---\n\n${'"'.repeat(600_000)}\n`,
      },
      ['agents/talker/agent.md:2: must be at most 1 MB'],
    ],
    [
      'with a skill that is no skill of a repository',
      agentWith('skills: [greet]'),
      [expect.stringMatching(/^agents\/reviewer\/agent\.md:2: .*must be owner\/repo:skill-name/)],
    ],
    [
      'with a skill of another name than its folder',
      { ...baseFiles, 'skills/s/SKILL.md': '---\nname: t\ndescription: d\n---\n' },
      ['skills/s/SKILL.md:1: has the name t, and its folder s: they must be the same'],
    ],
    [
      'with a skill that needs aliases of YAML',
      { ...baseFiles, 'agents/reviewer/skills/s/SKILL.md': '---\nname: &a s\ndescription: *a\n---\n' },
      [expect.stringMatching(/^agents\/reviewer\/skills\/s\/SKILL\.md:1: .*aliases are not followed/)],
    ],
    [
      'with more skills than a run may have',
      {
        ...baseFiles,
        ...Object.fromEntries(
          Array.from({ length: 11 }, (_, n) => [`skills/s${n}/SKILL.md`, `---\nname: s${n}\ndescription: d\n---\n`]),
        ),
      },
      ['agents/foreman', 'agents/reviewer'].map((agent) =>
        expect.stringContaining(`${agent}/agent.md:2: a run has at most 10 skills`),
      ),
    ],
  ])('%s is refused with file and line, and changes nothing', async (_name, files, expected) => {
    expect(await faultsOf(files)).toEqual(expected);
    expect(await webhooks()).toEqual([]);
    expect((await factory()).name).toBe('Empty');
  });

  test('cannot rename a webhook, and cannot change how its senders authenticate', async () => {
    await apply(baseFiles);
    const renamed = { ...baseFiles, 'webhooks/alerts.yaml': undefined, 'webhooks/alarms.yaml': 'secretName: ALERTS\n' };
    expect(await faultsOf(renamed)).toEqual([
      expect.stringContaining('the webhook alerts cannot be renamed to alarms'),
    ]);
    const other = {
      ...baseFiles,
      'webhooks/alerts.yaml': 'authMode: signature\nsignatureScheme: github\nsecretName: ALERTS\n',
    };
    expect(await faultsOf(other)).toEqual([expect.stringMatching(/^webhooks\/alerts\.yaml:1: cannot change/)]);
    expect((await stored()).version).toBe(1);
  });

  test('is refused if it contains the value of a secret of its runs, because redaction would change the stored automation', async () => {
    await setSecret('TOKEN', 'very/secret/value');
    const file = (prompt: string, secrets: string) =>
      `---\nsecrets: [${secrets}]\ntriggers:\n  - {provider: linear, event: very/secret/value}\n---\n\n${prompt}\n`;
    const pasted = { ...baseFiles, 'automations/a/automation.md': file('Use very/secret/value.', 'TOKEN') };
    expect(await faultsOf(pasted)).toEqual([
      expect.stringContaining('automations/a/automation.md:2: prompt: contains the value of a secret of its runs'),
      expect.stringContaining('automations/a/automation.md:4: triggers: contains the value of a secret of its runs'),
    ]);
    const unnamed = { ...baseFiles, 'automations/a/automation.md': file('Use it.', '') };
    await apply(unnamed);
    expect(await apply(unnamed)).toMatchObject({ changes: [], drift: [] });
  });

  test('changes nothing if its last part is refused', async () => {
    await apply(baseFiles);
    const uid = await webhookUid();
    const own = {
      name: 'look',
      prompt: 'p',
      triggers: [{ provider: 'webhook', event: 'received', filter: { webhook_ids: [uid] } }],
    };
    await service.request('POST', `${path}/automations`, { body: own });
    const files = {
      ...baseFiles,
      'factory.yaml': factoryFile.replace('Billing', 'Changed'),
      'automations/look/automation.md': automationFile(uid),
    };
    expect(await faultsOf(files)).toEqual([expect.stringContaining('an automation of this name that no file defines')]);
    expect((await factory()).name).toBe('Billing');
  });

  test('cannot use the alias of another factory, or a webhook or an environment of another team', async () => {
    await service.request('POST', '/factory', { body: { name: 'Other', alias: 'taken' } });
    const alias = { ...baseFiles, 'factory.yaml': `alias: taken\n${factoryFile}` };
    expect(await faultsOf(alias)).toEqual(['factory.yaml:1: another factory of the team has this alias']);
    const key = service.otherKey;
    const theirs = await service.request<Factory>('POST', '/factory', { body: { name: 'Theirs' }, key });
    const { body: webhook } = await service.request<Webhook>('POST', `/factory/${theirs.body.uid}/webhooks`, {
      body: { name: 'w' },
      key,
    });
    expect(await faultsOf({ ...baseFiles, 'automations/a/automation.md': automationFile(webhook.uid) })).toEqual([
      expect.stringContaining('the factory has no webhook'),
    ]);
    const { body: environment } = await service.request<{ uid: string }>('POST', '/agent/environments', {
      body: { config: { name: 'theirs' } },
      key,
    });
    const files = agentWith(`environmentId: ${environment.uid}`);
    expect(await faultsOf(files)).toEqual([expect.stringMatching(/^agents\/reviewer\/agent\.md:2: .*another team/)]);
    await service.request('PUT', '/secrets/THEIRS', { body: { value: 'a-secret-of-theirs', scope: 'team' }, key });
    expect(await faultsOf({ ...baseFiles, 'webhooks/alerts.yaml': 'secretName: THEIRS\n' })).toEqual([
      expect.stringContaining('the team has no secret THEIRS'),
    ]);
  });
});
