import type { ValidateFactoryFilesResponse } from '@runyard/contract/factories/factory-definitions';
import { keylessChecksPerMinute, maxKeylessDefinitionBytes } from '@runyard/contract/limits';
import { describe, expect, test } from 'vitest';
import { openTestService } from '../../../../test/service.ts';

const service = await openTestService();

test('the schemas of the files need no key', async () => {
  const read = <T>(path: string) => service.request<T>('GET', `/factory-files/schemas${path}`, { key: null });
  const listed = await read<{ versions: { schema_url: string }[] }>('');
  expect(listed.body.versions.map(({ schema_url }) => schema_url)).toEqual(['/api/v1/factory-files/schemas/v1alpha1']);
  const { body } = await read<{ documents: Record<string, unknown> }>('/v1alpha1');
  const names = ['agent', 'automation', 'environment', 'factory', 'runner', 'variables', 'webhook'].map(
    (name) => `${name}.schema.json`,
  );
  expect(Object.keys(body.documents).sort()).toEqual(names);
  for (const name of names) expect((await read(`/v1alpha1/${name}`)).body).toEqual(body.documents[name]);
  for (const path of ['/v2', '/v2/agent.schema.json', '/v1alpha1/constructor', '/v1alpha1/agent'])
    expect((await read(path)).status, path).toBe(404);
});

test('a client that already has the schemas gets no body', async () => {
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

test('files without a fault are valid, and the answer lists the names that only an apply looks up', async () => {
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

test('a fault has its position, and automations are checked only in files without a fault', async () => {
  const wrong = await validate({ 'factory.yaml': 'schemaVersion: v1alpha1\nnme: F\nrepositories: []\n' });
  expect(wrong.valid).toBe(false);
  expect(wrong.validation_scope.state_independent).toBe('not_run');
  expect(wrong.diagnostics).toContainEqual(
    expect.objectContaining({ code: 'FF_UNKNOWN_FIELD', path: 'factory.yaml', line: 2, column: 1, suggestion: 'name' }),
  );
  const trigger = 'triggers:\n  - {provider: schedule, event: cron_fired, schedule: {cron: "0 0 31 2 *"}}\n';
  const never = await validate({ 'automations/never/automation.md': `---\n${trigger}---\nGo.\n` });
  expect(never.diagnostics.map(({ code, path, line }) => [code, path, line])).toEqual([
    ['FF_INVALID_TRIGGER', 'automations/never/automation.md', 3],
  ]);
});

test.each([
  ['FF_ANCHOR', { 'webhooks/alerts.yaml': 'secretName: &a NONE\n' }],
  ['FF_ALIAS', { 'webhooks/alerts.yaml': 'secretName: *a\n' }],
  ['FF_TAG', { 'webhooks/alerts.yaml': 'secretName: !x NONE\n' }],
  ['FF_DUPLICATE_KEY', { 'webhooks/alerts.yaml': 'secretName: NONE\nsecretName: NONE\n' }],
  ['FF_INVALID_YAML', { 'webhooks/alerts.yaml': 'secretName: "\n' }],
  ['FF_UNSUPPORTED_PATH', { 'webhooks/alerts.txt': '' }],
  ['FF_MALFORMED_FRONTMATTER', { 'agents/lead/agent.md': 'Dispatch.\n' }],
  [
    'FF_UNSUPPORTED_VERSION',
    { 'factory.yaml': 'schemaVersion: v2\nname: F\nrepositories: []\nagentDefaults: {model: m}\n' },
  ],
  ['FF_TYPE_MISMATCH', { 'webhooks/alerts.yaml': 'secretName: 1\n' }],
  ['FF_INVALID_VALUE', { 'webhooks/alerts.yaml': 'secretName: NONE\nauthMode: none\n' }],
  ['FF_INVALID_REFERENCE', { 'agents/lead/agent.md': '---\nagentType: FOREMAN\nrunner: none\n---\n' }],
  [
    'FF_INVALID_EVENT',
    { 'automations/a/automation.md': '---\ntriggers: [{provider: github, event: none}]\n---\nGo.\n' },
  ],
  [
    'FF_INVALID_FILTER',
    {
      'automations/a/automation.md':
        '---\ntriggers: [{provider: factory, event: work_item_stage_changed, filter: {stages: [DONE]}}]\n---\nGo.\n',
    },
  ],
] as const)('a fault has the code %s of the public service', async (code, changed) => {
  const { diagnostics } = await validate(changed as unknown as Record<string, string>);
  expect(diagnostics.map((each) => each.code)).toContain(code);
});

test('a check of files changes nothing, and refuses a wrong key and the token of a run', async () => {
  const body = { files: [{ path: 'factory.yaml', content: 'name: F\n' }] };
  const { runToken } = await service.startExecution({});
  for (const key of [runToken, 'ryk_wrong']) {
    await service.problem(401, 'POST', '/factory-files/validate', { key, body });
  }
  const { factories } = (await service.request<{ factories: unknown[] }>('GET', '/factory')).body;
  expect(factories).toEqual([]);
});

describe('a check without a key', () => {
  const check = async (content: string, key: string | null = null) =>
    await service.request<ValidateFactoryFilesResponse & { detail?: string }>('POST', '/factory-files/validate', {
      key,
      body: { files: [{ path: 'factory.yaml', content }] },
    });

  test('has the same result as a check with a key', async () => {
    const wrong = 'schemaVersion: v1alpha1\nnme: F\nrepositories: []\n';
    const withKey = await check(wrong, service.key);
    expect(await check(wrong)).toMatchObject({ status: 200, body: withKey.body });
  });

  test('has a smaller maximum body', async () => {
    const large = '#'.repeat(maxKeylessDefinitionBytes);
    const refused = await check(large);
    expect([refused.status, refused.body.detail]).toEqual([413, expect.stringContaining('without a key')]);
    expect((await check(large, service.key)).status).toBe(200);
  });

  test('does not delay other requests, even if the YAML is hostile', async () => {
    const files = Array.from({ length: 7 }, (_, n) => ({
      path: `webhooks/w${n}.yaml`,
      content: '['.repeat(32 * 1024),
    }));
    await check('name: F');
    const before = process.threadCpuUsage();
    const { status, body } = await service.request<ValidateFactoryFilesResponse>('POST', '/factory-files/validate', {
      key: null,
      body: { files },
    });
    const { user, system } = process.threadCpuUsage(before);
    expect([status, body.diagnostics.length]).toEqual([200, 7]);
    // This CPU time is only that of the main thread, which parses the JSON of the request. Another thread parses the YAML, which takes
    // that thread more than a second.
    expect((user + system) / 1000).toBeLessThan(300);
  });

  test('is refused after too many checks from the same address, but a check with a key is still answered', async () => {
    let last = await check('');
    for (let sent = 0; last.status !== 429 && sent <= keylessChecksPerMinute.address; sent += 1) last = await check('');
    expect([last.status, last.body.detail]).toEqual([429, expect.stringContaining('Without a key, this address')]);
    expect(Number(last.headers.get('retry-after'))).toBeGreaterThan(0);
    expect((await check('', service.key)).status).toBe(200);
  });
});
