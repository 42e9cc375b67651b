import { spawn } from 'node:child_process';
import { expect, test } from 'vitest';
import { addressSettings, differencesTo, readEnvironmentOf } from './running-settings.ts';

const both = ['service', 'worker'];

test.each([
  ['a port', { RUNYARD_PORT: '4180' }, { RUNYARD_PORT: '5000' }, ['RUNYARD_PORT: 5000, 4180']],
  ['a port other than the default', {}, { RUNYARD_PORT: '5000' }, ['RUNYARD_PORT: 5000, 4180']],
  [
    'a model endpoint',
    {},
    { RUNYARD_MODEL_BASE_URL: 'http://127.0.0.1:1/v1' },
    ['RUNYARD_MODEL_BASE_URL: http://127.0.0.1:1/v1, not set'],
  ],
  [
    'keys of providers, without showing them',
    { RUNYARD_OPENAI_API_KEY: 'sk-canary-one' },
    { RUNYARD_OPENAI_API_KEY: 'sk-canary-two', RUNYARD_ANTHROPIC_API_KEY: 'sk-canary-three' },
    ['RUNYARD_ANTHROPIC_API_KEY: set, not set', 'RUNYARD_OPENAI_API_KEY: set, another value'],
  ],
])('differencesTo reports %s that the running programs do not have', (_, running, env, expected) => {
  const found = differencesTo(running, env, both).map((each) => `${each.name}: ${each.here}, ${each.running}`);
  expect(found).toEqual(expected);
});

test.each([
  ['the default, set or not', {}, { RUNYARD_PORT: '4180', RUNYARD_LOG: 'info' }],
  ['any free port', { RUNYARD_PORT: '40001' }, { RUNYARD_PORT: '0' }],
  [
    'a value that is written otherwise',
    { RUNYARD_OPENAI_BASE_URL: 'http://h:1/v1' },
    { RUNYARD_OPENAI_BASE_URL: 'http://h:1/v1/' },
  ],
  ['a setting that only the programs have', { RUNYARD_OPENAI_API_KEY: 'sk-canary' }, {}],
  ['the key and the folder of the command itself', {}, { RUNYARD_API_KEY: 'x', RUNYARD_DATA_DIR: 'elsewhere' }],
])('differencesTo finds no difference for %s', (_, running, env) => {
  expect(differencesTo(running, env, both)).toEqual([]);
});

test('differencesTo compares only settings of programs that run, and only the requested settings', () => {
  const env = { RUNYARD_WORKER_SLOTS: '3', RUNYARD_PORT: '5000' };
  expect(differencesTo({}, env, ['service']).map(({ name }) => name)).toEqual(['RUNYARD_PORT']);
  expect(differencesTo({}, { RUNYARD_LOG: 'debug' }, both, addressSettings)).toEqual([]);
});

test('readEnvironmentOf returns the environment with which a process was started', async () => {
  const child = spawn(process.execPath, ['-e', "process.stdin.on('end', () => {}).resume(); console.log('up')"], {
    env: { RUNYARD_MODEL_KEY: 'a=b\nc' },
  });
  try {
    await new Promise((resolve) => child.stdout.once('data', resolve));
    expect(readEnvironmentOf(child.pid ?? 0)).toMatchObject({ RUNYARD_MODEL_KEY: 'a=b\nc' });
  } finally {
    child.kill('SIGKILL');
  }
  expect(readEnvironmentOf(2 ** 30)).toBeUndefined();
});
