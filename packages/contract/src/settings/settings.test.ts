import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { newFolder } from '../../../../test/support/close-at-end.ts';
import { parseSettings, type SettingName, type Settings } from './settings.ts';

const folder = newFolder();

function read(env: Readonly<Record<string, string>>): Settings {
  const result = parseSettings(env);
  if (!result.ok) throw new Error(result.problems.join('\n'));
  return result.settings;
}

function problemOf(env: Readonly<Record<string, string>>): string {
  const result = parseSettings(env);
  return result.ok ? '' : result.problems.join('\n');
}

describe('white space', () => {
  test('at the ends of a value is removed', () => {
    expect(
      read({
        RUNYARD_PORT: ' 4180\r',
        RUNYARD_BASE_URL: '\thttps://runyard.example.com/ ',
        RUNYARD_OPENAI_API_KEY: ' sk-1\n',
        RUNYARD_RETENTION_RUN_DAYS: '  ',
      }),
    ).toMatchObject({
      RUNYARD_PORT: 4180,
      RUNYARD_BASE_URL: 'https://runyard.example.com',
      RUNYARD_OPENAI_API_KEY: 'sk-1',
      RUNYARD_RETENTION_RUN_DAYS: 400,
    });
  });

  test('at the ends of a file with a secret is removed, with its byte order mark', () => {
    const file = path.join(folder, 'key');
    writeFileSync(file, '\uFEFF  sk-1 \r\n\r\n');
    expect(read({ RUNYARD_OPENAI_API_KEY_FILE: `${file}\n` }).RUNYARD_OPENAI_API_KEY).toBe('sk-1');
  });

  test('alone in a file with a secret is a problem', () => {
    const file = path.join(folder, 'empty');
    writeFileSync(file, ' \r\n');
    expect(problemOf({ RUNYARD_API_KEY_FILE: file })).toContain(
      'RUNYARD_API_KEY: the file of RUNYARD_API_KEY_FILE is empty',
    );
  });
});

describe('a secret that is sent in a header', () => {
  const names: SettingName[] = [
    'RUNYARD_ANTHROPIC_API_KEY',
    'RUNYARD_OPENAI_API_KEY',
    'RUNYARD_GOOGLE_API_KEY',
    'RUNYARD_MODEL_KEY',
    'RUNYARD_CONTENT_POLICY_KEY',
    'RUNYARD_API_KEY',
    'RUNYARD_BOOTSTRAP_KEY',
    'RUNYARD_WORKER_KEY',
    'RUNYARD_METRICS_TOKEN',
  ];
  test.each(names)('%s is refused without a part of its value if it has a line break', (name) => {
    const problem = problemOf({ [name]: 'sk-0123456789\nabcdefghijklmn' });
    expect(problem).toContain(`${name}: must `);
    expect(problem).not.toMatch(/sk-0|abcdef/);
  });

  test.each([
    ['sk-1\r\nsk-2', 'character 5 is a line break'],
    ['sk-1 sk-2', 'character 5 is white space'],
    ['sk-\u00fc', 'character 4 is another character'],
    ['sk-\0', 'character 4 is another character'],
    ['"sk-1"', 'must not be in quotation marks'],
  ])('%j is refused: %s', (value, problem) => {
    expect(problemOf({ RUNYARD_MODEL_KEY: value })).toContain(problem);
  });

  test('is refused with the same words if a file in UTF-16 has it', () => {
    const file = path.join(folder, 'utf16');
    writeFileSync(file, Buffer.from('\uFEFFsk-1\r\n', 'utf16le'));
    expect(problemOf({ RUNYARD_MODEL_KEY_FILE: file })).toContain(
      'RUNYARD_MODEL_KEY: must be visible ASCII characters',
    );
  });
});

describe('an address', () => {
  test.each<[SettingName, string, string]>([
    ['RUNYARD_BASE_URL', 'https://a:secret@runyard.example.com', 'must not have a user or a password'],
    ['RUNYARD_BASE_URL', 'https://runyard.example.com/#top', 'must not have a query or a fragment'],
    ['RUNYARD_MODEL_BASE_URL', 'https://models.example.com/v1?api-version=1', 'must not have a query or a fragment'],
    ['RUNYARD_MODEL_BASE_URL', 'https://a:secret@models.example.com/v1#x', 'must not have a query or a fragment'],
    ['RUNYARD_OPENAI_BASE_URL', 'https://models.example.com/a b', 'must be an http:// or https:// URL'],
    ['RUNYARD_OPENAI_BASE_URL', 'https://models.exa\nmple.com', 'must be an http:// or https:// URL'],
    ['RUNYARD_CODE_HOST_URL', 'https://a:secret@git example/{owner}/{repo}', 'must be an http(s) URL'],
    ['RUNYARD_HOST', 'https://127.0.0.1', 'must be an IP address or a host name'],
    ['RUNYARD_HOST', '127.0.0.1:4180', 'must be an IP address or a host name, without a port'],
    ['RUNYARD_HOST', '[::1]', 'must be an IP address or a host name'],
    ['RUNYARD_DOCKER_REGISTRIES', 'docker.io,https://ghcr.io', '"https://ghcr.io" is not'],
    ['RUNYARD_KUBERNETES_SERVICE_PODS', 'runyard/app=runyard:76760', 'such as runyard/app=runyard:7676'],
    ['RUNYARD_DATABASE_URL', 'postgres://a:secret@localhost/x\ny', 'must not have a line break'],
  ])('%s refuses %j: %s, and shows no password', (name, value, problem) => {
    const found = problemOf({ [name]: value });
    expect(found).toContain(`${name}: `);
    expect(found).toContain(problem);
    expect(found).not.toContain('secret');
  });

  test.each<[SettingName, string]>([
    ['RUNYARD_MODEL_BASE_URL', 'http://user:pass@127.0.0.1:8080/v1'],
    ['RUNYARD_HOST', '::1'],
    ['RUNYARD_HOST', 'fe80::1%eth0'],
    ['RUNYARD_HOST', 'runyard.internal'],
    ['RUNYARD_KUBERNETES_SERVICE_PODS', 'runyard/app=runyard,tier=a:7676'],
  ])('%s takes %j', (name, value) => {
    expect(read({ [name]: value })[name]).toBe(value);
  });
});

test.each<[SettingName, string]>([
  ['RUNYARD_MODELS_FILE', '/etc/runyard/models\n.yaml'],
  ['RUNYARD_DATA_DIR', 'data\0'],
  ['RUNYARD_BLOBS', '/srv/blobs\0'],
  ['RUNYARD_DOCKER_CONFIG', '/root/\u0007'],
])('the path %s refuses %j', (name, value) => {
  expect(problemOf({ [name]: value })).toContain(`${name}: must not have a line break or another control character`);
});

test.each(['64MB', '64 MB', '1e3', '1_000', '-1', '1.5'])('the number %j is refused', (value) => {
  expect(problemOf({ RUNYARD_ARTIFACT_MB: value })).toContain('must be a whole number without a unit');
});

test('lists ignore empty entries and line breaks between entries', () => {
  const settings = read({
    RUNYARD_MODELS: ',openai/a,,\n openai/b ,',
    RUNYARD_TRUSTED_PROXIES: '127.0.0.1,,10.0.0.0/24,',
    RUNYARD_EGRESS: 'example.com,\n*.example.org,',
  });
  expect(settings.RUNYARD_MODELS).toEqual(['openai/a', 'openai/b']);
  expect(settings.RUNYARD_TRUSTED_PROXIES).toEqual(['127.0.0.1/32', '10.0.0.0/24']);
  expect(settings.RUNYARD_EGRESS).toHaveLength(2);
});
