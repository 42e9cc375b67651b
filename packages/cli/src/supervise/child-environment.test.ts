import { settingsTable } from '@runyard/contract/settings/settings';
import { expect, test } from 'vitest';
import { childEnvironment } from './child-environment.ts';

const everything: Record<string, string> = {
  PATH: '/usr/bin',
  HOME: '/root',
  AWS_SECRET_ACCESS_KEY: 'x',
  SSH_AUTH_SOCK: '/tmp/agent',
  NODE_OPTIONS: '--inspect',
  LD_PRELOAD: '/tmp/evil.so',
  HTTPS_PROXY: 'http://user:password@proxy',
  OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20collector',
  ...Object.fromEntries(Object.keys(settingsTable).map((name) => [name, 'value'])),
};

test('the worker gets the proxy, but no key of a model provider, no database address and no other variables of the shell', () => {
  const env = childEnvironment('worker', everything, {});
  expect(Object.keys(env).sort()).toEqual(
    [
      'HOME',
      'HTTPS_PROXY',
      'PATH',
      ...Object.entries(settingsTable)
        .filter(([, setting]) => (setting.usedBy as readonly string[]).includes('worker'))
        .map(([name]) => name),
    ].sort(),
  );
  for (const name of [
    'RUNYARD_ANTHROPIC_API_KEY',
    'RUNYARD_DATABASE_URL',
    'RUNYARD_BOOTSTRAP_KEY',
    'RUNYARD_MODEL_KEY',
  ]) {
    expect(env).not.toHaveProperty(name);
  }
});

test('the service gets its settings and the proxy variables, but not the key of the worker', () => {
  const env = childEnvironment('service', everything, {});
  expect(env).toHaveProperty('RUNYARD_ANTHROPIC_API_KEY');
  expect(env).toHaveProperty('HTTPS_PROXY');
  expect(env).toHaveProperty('OTEL_EXPORTER_OTLP_HEADERS');
  for (const name of ['RUNYARD_API_KEY', 'AWS_SECRET_ACCESS_KEY', 'SSH_AUTH_SOCK', 'NODE_OPTIONS', 'LD_PRELOAD']) {
    expect(env).not.toHaveProperty(name);
  }
});

test('the service gets the variables of the AWS SDK if blobs are in a bucket, but the worker does not', () => {
  const env = { ...everything, RUNYARD_BLOBS: 's3://bucket' };
  expect(childEnvironment('service', env, {})).toHaveProperty('AWS_SECRET_ACCESS_KEY');
  expect(childEnvironment('worker', env, {})).not.toHaveProperty('AWS_SECRET_ACCESS_KEY');
});

test('values of the supervisor have priority over values of the shell', () => {
  expect(childEnvironment('service', everything, { RUNYARD_PORT: '5000' }).RUNYARD_PORT).toBe('5000');
});

test('a program gets a variable such as RUNYARD_API_KEY_FILE only if the program uses the secret and does not get the secret itself', () => {
  const env = { RUNYARD_DATABASE_URL_FILE: '/run/secrets/database', RUNYARD_API_KEY_FILE: '/run/secrets/key' };
  expect(childEnvironment('service', env, {})).toEqual({ RUNYARD_DATABASE_URL_FILE: '/run/secrets/database' });
  expect(childEnvironment('worker', env, { RUNYARD_API_KEY: 'k' })).toEqual({ RUNYARD_API_KEY: 'k' });
});
