import { mkdtempSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { AgentModel } from '@runyard/contract/agent/agent-protocol';
import { expect, test } from 'vitest';
import { prepareProgram } from './external.ts';
import type { Forwarder } from './forwarder/forwarder.ts';

const forwarder = { url: 'http://127.0.0.1:1', key: 'placeholder' } as Forwarder;

function variablesFor(
  protocol: AgentModel['protocol'],
  gateway_path: string,
  own: { readonly env?: Record<string, string>; readonly ofHarness?: Record<string, string> } = {},
): Readonly<Record<string, string | undefined>> {
  const model = { id: 'x/m', protocol, provider_model: 'm', gateway_path, vision_supported: false };
  const harness = { type: 'command', command: ['tool'], model, env: own.ofHarness };
  const task = { harness, agent_config: {} } as never;
  return prepareProgram({ task, folder: '/work', env: own.env ?? {}, forwarder, hasNoNetwork: false }).env;
}

test('a program finds the stand-ins of its preset before other programs', () => {
  const model = {
    id: 'openai/m',
    protocol: 'openai-responses',
    provider_model: 'm',
    gateway_path: '/',
    vision_supported: false,
  };
  const home = mkdtempSync(path.join(tmpdir(), 'runyard-home-'));
  const pathFor = (policy: string) => {
    const task = { harness: { type: 'codex', model }, agent_config: { approval_policy: policy } } as never;
    const env = { HOME: home, PATH: '/usr/bin' };
    return prepareProgram({ task, folder: '/work', env, forwarder, hasNoNetwork: false }).env.PATH;
  };
  expect(pathFor('auto-approve')).toBe('/usr/bin');
  expect(pathFor('ask')).toBe(`${home}/.codex/asks:/usr/bin`);
  expect(statSync(path.join(home, '.codex/asks/bwrap')).mode & 0o777).toBe(0o700);
  expect(statSync(path.join(home, '.codex/config.toml')).mode & 0o777).toBe(0o600);
});

test.each([
  [
    'anthropic',
    '/api/v1/gateway/anthropic/v1',
    { ANTHROPIC_BASE_URL: 'http://127.0.0.1:1/anthropic', ANTHROPIC_API_KEY: 'placeholder' },
  ],
  [
    'openai-responses',
    '/api/v1/gateway/openai/v1',
    { OPENAI_BASE_URL: 'http://127.0.0.1:1/openai/v1', OPENAI_API_KEY: 'placeholder' },
  ],
  [
    'openai-compatible',
    '/api/v1/gateway/local/v1',
    { OPENAI_BASE_URL: 'http://127.0.0.1:1/local/v1', OPENAI_API_KEY: 'placeholder' },
  ],
  [
    'google',
    '/api/v1/gateway/google/v1beta',
    {
      GOOGLE_GEMINI_BASE_URL: 'http://127.0.0.1:1/google',
      GEMINI_API_BASE: 'http://127.0.0.1:1/google',
      GEMINI_API_KEY: 'placeholder',
      GOOGLE_GENERATIVE_AI_API_KEY: 'placeholder',
    },
  ],
] as const)('gives the clients of %s their own variables, and no others', (protocol, path, expected) => {
  expect(variablesFor(protocol, path)).toEqual({
    ...expected,
    RUNYARD_MODEL: 'm',
    RUNYARD_MODEL_PROTOCOL: protocol,
    RUNYARD_MODEL_BASE_URL: `http://127.0.0.1:1${path.replace('/api/v1/gateway', '')}`,
    RUNYARD_MODEL_KEY: 'placeholder',
  });
});

test.each([
  ['anthropic', { env: { ANTHROPIC_AUTH_TOKEN: 'secret-of-the-run' } }, 'ANTHROPIC_BASE_URL'],
  ['openai-responses', { env: { OPENAI_API_KEY: 'secret-of-the-run' } }, 'OPENAI_BASE_URL'],
  ['openai-compatible', { ofHarness: { OPENAI_API_BASE: 'http://own' } }, 'OPENAI_API_KEY'],
  ['google', { env: { GOOGLE_API_KEY: 'secret-of-the-run' } }, 'GEMINI_API_BASE'],
] as const)('sends no key of the run itself to the gateway: %s', (protocol, own, name) => {
  const variables = variablesFor(protocol, '/api/v1/gateway/x/v1', own);
  expect(variables).toMatchObject({ ...('env' in own ? own.env : own.ofHarness), RUNYARD_MODEL_KEY: 'placeholder' });
  expect(variables[name]).toBeUndefined();
});
