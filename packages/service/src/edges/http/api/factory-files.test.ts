import type { ValidateFactoryFilesResponse } from '@runyard/contract/factories/factory-definitions';
import { expect, test } from 'vitest';
import { openTestService } from '../../../../test/service.ts';

const service = await openTestService();

test('the schemas of the files need no key', async () => {
  const read = <T>(path: string) => service.request<T>('GET', `/factory-files/schemas${path}`, { key: null });
  const listed = await read<{ versions: { schema_url: string }[] }>('');
  expect(listed.body.versions.map(({ schema_url }) => schema_url)).toEqual(['/api/v1/factory-files/schemas/v1alpha1']);
  const { body } = await read<{ documents: Record<string, unknown> }>('/v1alpha1');
  const names = ['agent', 'automation', 'factory', 'runner', 'webhook'].map((name) => `${name}.schema.json`);
  expect(Object.keys(body.documents).sort()).toEqual(names);
  for (const name of names) expect((await read(`/v1alpha1/${name}`)).body).toEqual(body.documents[name]);
  for (const path of ['/v2', '/v2/agent.schema.json', '/v1alpha1/constructor', '/v1alpha1/agent'])
    expect((await read(path)).status, path).toBe(404);
});

test('a client that has the schemas gets no body', async () => {
  for (const path of ['', '/v1alpha1', '/v1alpha1/agent.schema.json']) {
    const { headers } = await service.request('GET', `/factory-files/schemas${path}`, { key: null });
    const again = await service.request('GET', `/factory-files/schemas${path}`, {
      key: null,
      headers: { 'if-none-match': headers.get('etag') ?? '' },
    });
    expect([again.status, again.text], path).toEqual([304, '']);
  }
});

const files = {
  'factory.yaml':
    'schemaVersion: v1alpha1\nname: F\nrepositories: []\nagentDefaults:\n  model: nobody/knows\n  secrets: [NONE]\n',
  'agents/lead/agent.md': '---\nagentType: FOREMAN\nenvironmentId: h3Kq8ZrT0mWxY5bNc2LpVd\n---\nDispatch.\n',
  'webhooks/alerts.yaml': 'secretName: NONE\n',
};
const validate = async (changed: Readonly<Record<string, string>>) => {
  const body = { files: Object.entries({ ...files, ...changed }).map(([path, content]) => ({ path, content })) };
  return (await service.request<ValidateFactoryFilesResponse>('POST', '/factory-files/validate', { body })).body;
};

test('files without a fault are valid, and the names that only an apply looks up are listed', async () => {
  const { valid, diagnostics, deferred_resolutions: deferred, validation_scope: scope } = await validate({});
  expect({ valid, diagnostics, scope }).toEqual({
    valid: true,
    diagnostics: [],
    scope: { parser: 'checked', state_independent: 'checked', state_dependent: 'not_checked' },
  });
  expect(deferred).toEqual([
    { path: 'factory.yaml', field: 'agentDefaults.model', kind: 'model' },
    { path: 'factory.yaml', field: 'agentDefaults.secrets', kind: 'secret' },
    { path: 'agents/lead/agent.md', field: 'environmentId', kind: 'environment' },
    { path: 'webhooks/alerts.yaml', field: 'secretName', kind: 'secret' },
  ]);
});

test('a fault has its place, and automations are checked only in files without one', async () => {
  const wrong = await validate({ 'factory.yaml': 'schemaVersion: v1alpha1\nnme: F\nrepositories: []\n' });
  expect(wrong.valid).toBe(false);
  expect(wrong.validation_scope.state_independent).toBe('not_run');
  expect(wrong.diagnostics).toContainEqual(
    expect.objectContaining({ code: 'FF_INVALID_FILE', path: 'factory.yaml', line: 2, column: 1, suggestion: 'name' }),
  );
  const trigger = 'triggers:\n  - {provider: schedule, event: cron_fired, schedule: {cron: "0 0 31 2 *"}}\n';
  const never = await validate({ 'automations/never/automation.md': `---\n${trigger}---\nGo.\n` });
  expect(never.diagnostics.map(({ path, line }) => [path, line])).toEqual([['automations/never/automation.md', 3]]);
});

test('a check of files changes nothing, and needs a key of a person or an agent of the team', async () => {
  const body = { files: [{ path: 'factory.yaml', content: 'name: F\n' }] };
  const { runToken } = await service.startExecution({});
  for (const key of [null, runToken, 'ryk_wrong']) {
    await service.problem(401, 'POST', '/factory-files/validate', { key, body });
  }
  const { factories } = (await service.request<{ factories: unknown[] }>('GET', '/factory')).body;
  expect(factories).toEqual([]);
});
