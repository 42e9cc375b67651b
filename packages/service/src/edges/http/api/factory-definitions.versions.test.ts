// biome-ignore-all lint/suspicious/noTemplateCurlyInString: variables of definition files have this form
import type {
  DefinitionDiff,
  DefinitionVersion,
  DefinitionVersionItem,
} from '@runyard/contract/factories/definition-versions';
import type { ApplyDefinitionResponse, DispatchResponse } from '@runyard/contract/factories/factory-definitions';
import { maxDefinitionVersionBytes, maxDefinitionVersions } from '@runyard/contract/limits';
import type { RunItem } from '@runyard/contract/runs/runs';
import { beforeEach, describe, expect, test } from 'vitest';
import { baseFiles, type Files, filesOf, testDefinitions, toBody } from '../../../../test/definitions.ts';
import { newPerson, teamUidOf } from '../../../../test/people.ts';
import { openTestService } from '../../../../test/service.ts';

const service = await openTestService();
const team = await teamUidOf(service);
const { apply, automations, open, stored, webhooks } = testDefinitions(service);

let path = '';
let uid = '';
beforeEach(async () => {
  path = await open();
  uid = path.split('/').at(-1) ?? '';
});

const withPrompt = (prompt: string): Files => ({
  ...baseFiles,
  'agents/foreman/agent.md': `---\nagentType: FOREMAN\n---\n\n${prompt}\n`,
});
const applyAs = async (key: string, files: Files) => {
  const answer = await service.request('PUT', `${path}/definition`, { key, body: toBody(files) });
  if (answer.status !== 200) throw new Error(answer.text);
};
const versions = async () =>
  (await service.request<{ versions: DefinitionVersion[] }>('GET', `${path}/definition/versions`)).body.versions;
const rollBack = (version: number, more: object = {}, key = service.key) =>
  service.request<ApplyDefinitionResponse>('POST', `${path}/definition/rollback`, { key, body: { version, ...more } });

describe('the versions of a definition', () => {
  test('are listed, read and compared', async () => {
    const files = {
      ...baseFiles,
      'variables.yaml': 'variables: {host: {default: mac}}\n',
      'agents/reviewer/agent.md': '---\nagentType: REVIEW\nworkerHost: ${{ variables.host }}\n---\n\nReview.\n',
    };
    await apply(files);
    await apply(files, { variables: { host: 'linux' } });
    await apply(withPrompt('Do it.'));
    expect(await versions()).toMatchObject([
      { version: 3, variables: {} },
      { version: 2, variables: { host: 'linux' } },
      { version: 1, variables: {}, is_kept: true, applied_by: { type: 'user' } },
    ]);
    const { body: second } = await service.request<DefinitionVersionItem>('GET', `${path}/definition/versions/2`);
    expect(Object.fromEntries((second.files ?? []).map((file) => [file.path, file.content]))).toEqual(filesOf(files));
    const diff = async (query: string) =>
      (await service.request<DefinitionDiff>('GET', `${path}/definition/versions/2/diff${query}`)).body;
    const host = (before: string, after: string) => [
      {
        kind: 'agent',
        name: 'reviewer',
        action: 'change',
        members: [{ member: 'workerHost', before, after }],
      },
    ];
    expect(await diff('')).toEqual({ from: 1, to: 2, changes: host('mac', 'linux') });
    expect((await diff('?from=3')).changes).toMatchObject([{ name: 'foreman' }, ...host('mac', 'linux')]);
    expect((await diff('?from=0')).changes.every(({ action }) => action === 'create')).toBe(true);
  });

  test('are those of the team only, and a version that does not exist is not found', async () => {
    await apply(baseFiles);
    for (const [key, file] of [
      [service.otherKey, ''],
      [service.otherKey, '/1'],
      [service.otherKey, '/1/diff'],
      [service.key, '/2'],
      [service.key, '/x'],
      [service.key, '/1e0'],
      [service.key, '/1/diff?from=9'],
    ] as const)
      await service.problem(404, 'GET', `${path}/definition/versions${file}`, { key });
    for (const [key, version] of [
      [service.otherKey, 1],
      [service.key, 2],
    ] as const)
      expect((await rollBack(version, {}, key)).status).toBe(404);
  });

  test('are at most a hundred, and too many files are kept only as the present definition', async () => {
    await apply(baseFiles);
    await service.deps.db.query(`UPDATE factory_definitions SET version = $2 WHERE factory_uid = $1`, [
      uid,
      maxDefinitionVersions,
    ]);
    await apply(baseFiles);
    expect((await versions()).map(({ version }) => version)).toEqual([maxDefinitionVersions + 1]);
    const large = Object.fromEntries(
      Array.from({ length: 5 }, (_, n) => [`scorers/s${n}/scorer.md`, 'x'.repeat(maxDefinitionVersionBytes / 4 - 100)]),
    );
    await apply({ ...baseFiles, ...large });
    const [{ version, is_kept } = { version: 0, is_kept: true }] = await versions();
    expect(is_kept).toBe(false);
    expect((await stored()).files).toHaveLength(9);
    expect((await service.problem(409, 'POST', `${path}/definition/rollback`, { body: { version } })).detail).toContain(
      'too large to be kept',
    );
    await service.problem(409, 'GET', `${path}/definition/versions/${version}/diff`);
  });
});

describe('a rollback', () => {
  test('applies the files and variables of the version again, and makes a new version', async () => {
    const files = {
      ...baseFiles,
      'variables.yaml': 'variables: {on: {default: true}}\n',
      'automations/a/automation.md':
        '---\nenabled: ${{ variables.on }}\ntriggers:\n  - {provider: webhook, event: received, filter: {webhooks: [alerts]}}\n---\n\nLook.\n',
    };
    await apply(files, { variables: { on: false } });
    await apply({ ...files, 'webhooks/alerts.yaml': undefined, 'automations/a/automation.md': undefined });
    expect([await webhooks(), await automations()]).toEqual([[], []]);
    const plan = await rollBack(1, { dry_run: true });
    expect(plan.body.changes.map(({ kind, name, action }) => `${action} ${kind} ${name}`)).toEqual([
      'create automation a',
      'create webhook alerts',
    ]);
    expect(await webhooks()).toEqual([]);
    expect((await rollBack(1, { expected_version: 1 })).status).toBe(409);
    expect((await rollBack(1, { expected_version: 2 })).body).toMatchObject({ version: 3, changes: plan.body.changes });
    expect(await automations()).toMatchObject([{ enabled: false }]);
    expect(await versions()).toMatchObject([{ version: 3, rolled_back_to: 1, variables: { on: false } }, {}, {}]);
    expect((await stored()).drift).toEqual([]);
  });

  test('has the faults that the files have now', async () => {
    await apply(baseFiles);
    await apply({ ...baseFiles, 'webhooks/alerts.yaml': undefined });
    await service.request('DELETE', '/secrets/ALERTS?scope=team');
    const { errors } = await service.problem(422, 'POST', `${path}/definition/rollback`, { body: { version: 1 } });
    expect(errors).toMatchObject([{ path: 'webhooks/alerts.yaml', line: 1 }]);
    expect(await versions()).toHaveLength(2);
  });

  test('to a text whose author has left makes its sender an author, and asks for acceptances again', async () => {
    const left = await newPerson(service, team, 'member');
    const sender = await newPerson(service, team, 'member');
    const waitingRevision = async () => {
      const { body } = await service.request<{ waiting: { kind: string; revision: number }[] }>(
        'GET',
        `/acceptances?uid=${uid}`,
      );
      return body.waiting.find(({ kind }) => kind === 'definition')?.revision;
    };
    const accept = async (revision: number | undefined) =>
      await service.request('POST', '/acceptances', { body: { kind: 'definition', uid, revision } });
    /** Returns the definition that a new run of the owner executes. */
    const executed = async () => {
      const { body } = await service.request<DispatchResponse>('POST', `${path}/runs`, { body: { prompt: 'Go.' } });
      const run = await service.request<RunItem>('GET', `/agent/runs/${body.run_id}`);
      return (run.body.contents ?? []).filter(({ kind }) => kind === 'definition');
    };
    await applyAs(left.key, withPrompt('Text of the person who has left.'));
    const first = await waitingRevision();
    expect((await accept(first)).status).toBe(200);
    expect(await executed()).toMatchObject([{ is_accepted: true }]);
    await applyAs(sender.key, withPrompt('Another text.'));
    expect((await service.request('DELETE', `/teams/${team}/members/${left.uid}`)).status).toBe(200);
    expect((await rollBack(1, {}, sender.key)).body.version).toBe(3);
    expect(await versions()).toMatchObject([{ applied_by: { uid: sender.uid }, rolled_back_to: 1 }, {}, {}]);
    const contents = await executed();
    expect(contents.map(({ is_accepted }) => is_accepted)).not.toContain(true);
    expect(contents.map(({ author }) => author?.uid)).toContain(sender.uid);
    const again = await waitingRevision();
    expect(again).toBeGreaterThan(first ?? 0);
    expect((await accept(again)).status).toBe(200);
    expect(await executed()).toMatchObject([{ is_accepted: true }]);
  });

  test.each(['viewer', 'agent'] as const)('is not done for: %s', async (who) => {
    await apply(baseFiles);
    const key = await service.newKey(who === 'agent' ? { kind: 'agent' } : { role: 'viewer' });
    expect((await rollBack(1, {}, key)).status).toBe(403);
    expect((await service.request('GET', `${path}/definition/versions`, { key })).status).toBe(200);
  });
});
