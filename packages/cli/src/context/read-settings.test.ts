import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { Failure } from '../exits/failure.ts';
import { readSettings } from './read-settings.ts';

function refusal(env: Record<string, string>): string {
  try {
    readSettings(env);
  } catch (error) {
    if (error instanceof Failure) {
      expect(error.exitCode).toBe(2);
      return error.message;
    }
    throw error;
  }
  return 'nothing was refused';
}

test.each([
  ['RUNYARD_PORT', '70000', 'must be between 0 and 65535 (it is "70000")'],
  ['RUNYARD_PORT', 'http', 'must be a whole number without a unit (it is "http")'],
  ['RUNYARD_BASE_URL', 'runyard.example', 'must be an http:// or https:// URL (it is "runyard.example")'],
  ['RUNYARD_SANDBOX', 'jail', '(it is "jail")'],
  ['RUNYARD_LOG', 'loud', '(it is "loud")'],
  ['RUNYARD_CODE_HOST_URL', 'https://example.com', 'must be an http(s) URL with {owner} and {repo} in it'],
  ['RUNYARD_WORKER_NAME', 'a b', 'must be 1 to 63 characters'],
  ['RUNYARD_WORKER_SLOTS', '0', 'must be between 1 and 1000'],
  ['RUNYARD_SANDBOX_MEMORY_MB', '64', 'must be between 128 and'],
  ['RUNYARD_ALLOW_PRIVATE_NETWORKS', '10.0.0.0/33', 'must be networks like 10.0.0.0/8 or fd00::/8'],
  ['RUNYARD_ALLOW_PRIVATE_NETWORKS', 'fd00::1::/8', 'must be networks like 10.0.0.0/8 or fd00::/8'],
  ['RUNYARD_ALLOW_PRIVATE_NETWORKS', 'fd00::/129', 'must be networks like 10.0.0.0/8 or fd00::/8'],
  ['RUNYARD_EGRESS', 'example.com,*', 'must be any, none, or hosts like example.com'],
  ['RUNYARD_UNKNOWN_MODEL_PRICE', '2', 'must be two prices in US dollars'],
  ['RUNYARD_PROT', '4180', 'is not a setting of Runyard; did you mean RUNYARD_PORT?'],
  ['RUNYARD_COLOUR', 'red', 'is not a setting of Runyard; see docs/settings.md'],
])('%s=%s is refused with its name and the reason', (name, value, reason) => {
  const message = refusal({ [name]: value });
  expect(message).toContain(`${name}: `);
  expect(message).toContain(reason);
});

test.each([
  ['RUNYARD_DATABASE_URL', 'mysql://user:hunter2@host/db'],
  ['RUNYARD_BOOTSTRAP_KEY', 'hunter2'],
])('the error about a wrong value of %s does not show the value', (name, value) => {
  const message = refusal({ [name]: value });
  expect(message).toContain(`${name}: must be`);
  expect(message).not.toContain('hunter2');
});

test('readSettings reports all wrong settings in one error', () => {
  expect(refusal({ RUNYARD_PORT: '-1', RUNYARD_LOG: 'loud' })).toMatch(
    /2 settings are wrong:\n {2}RUNYARD_PORT: .*\n {2}RUNYARD_LOG: /,
  );
});

test('readSettings treats an empty value as absent', () => {
  expect(readSettings({ RUNYARD_PORT: '', RUNYARD_BASE_URL: '' })).toMatchObject({ RUNYARD_PORT: 4180 });
});

test('readSettings parses lists, networks, rules and prices', () => {
  const env = {
    RUNYARD_MODELS: ' local/a, ,local/b',
    RUNYARD_ALLOW_PRIVATE_NETWORKS: '10.20.0.0/16,fd00::/8',
    RUNYARD_EGRESS_RANGES: '192.0.2.77/24, 2001:DB8:0:0:1::9/32,198.51.100.7,192.0.2.0/24,::1,2001:db8::ff00/120',
    RUNYARD_EGRESS: 'example.com:8443',
    RUNYARD_UNKNOWN_MODEL_PRICE: '0.5/2',
  };
  expect(readSettings(env)).toMatchObject({
    RUNYARD_MODELS: ['local/a', 'local/b'],
    RUNYARD_ALLOW_PRIVATE_NETWORKS: ['10.20.0.0/16', 'fd00::/8'],
    RUNYARD_EGRESS_RANGES: ['192.0.2.0/24', '2001:db8::/32', '198.51.100.7/32', '::1/128', '2001:db8::ff00/120'],
    RUNYARD_EGRESS: [{ host: 'example.com', isWildcard: false, ports: [8443] }],
    RUNYARD_UNKNOWN_MODEL_PRICE: { input: 0.5, output: 2 },
  });
});

describe('a secret in a file', () => {
  const inFile = (content: string): string => {
    const file = path.join(mkdtempSync(path.join(tmpdir(), 'runyard-secret-')), 'secret');
    writeFileSync(file, content);
    return file;
  };

  test('is read without white space at its end', () => {
    const settings = readSettings({ RUNYARD_API_KEY_FILE: inFile('rk_1\n') });
    expect(settings.RUNYARD_API_KEY).toBe('rk_1');
  });

  test.each([
    ['is empty', () => ({ RUNYARD_API_KEY_FILE: inFile('\n') }), /RUNYARD_API_KEY: the file of .* is empty/],
    [
      'is missing',
      () => ({ RUNYARD_API_KEY_FILE: '/nowhere' }),
      /RUNYARD_API_KEY: the file of .* cannot be read: ENOENT/,
    ],
    [
      'has a value beside it',
      () => ({ RUNYARD_API_KEY_FILE: inFile('rk_1'), RUNYARD_API_KEY: 'rk_2' }),
      /RUNYARD_API_KEY: is set, and RUNYARD_API_KEY_FILE too/,
    ],
    [
      'is of a setting that is no secret',
      () => ({ RUNYARD_PORT_FILE: inFile('1') }),
      /RUNYARD_PORT_FILE: is not a setting/,
    ],
    [
      'has a wrong value, which is not shown',
      () => ({ RUNYARD_DATABASE_URL_FILE: inFile('hunter2') }),
      /RUNYARD_DATABASE_URL: must be a postgres:\/\/ URL$/,
    ],
  ])('is refused if it %s', (_, env, expected) => {
    expect(() => readSettings(env())).toThrow(expected);
  });
});
