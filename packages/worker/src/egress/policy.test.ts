import os from 'node:os';
import type { Host } from '@runyard/contract/egress/host-name';
import { parseSettings, type Settings } from '@runyard/contract/settings/settings';
import { expect, test } from 'vitest';
import { egressAddresses, egressPolicy } from './policy.ts';

function settings(env: Record<string, string>): Settings {
  const parsed = parseSettings(env);
  if (!parsed.ok) throw new Error(parsed.problems.join('; '));
  return parsed.settings;
}
const operator = (text: string) => settings({ RUNYARD_EGRESS: text }).RUNYARD_EGRESS;
const name = (host: string): Host => ({ kind: 'name', host });

test('egressPolicy allows the hosts of the environment if the operator allows any host', () => {
  const policy = egressPolicy(['example.com', '*.example.org:8443'], settings({}).RUNYARD_EGRESS);
  expect(policy.allowed).toEqual(['example.com', '*.example.org:8443']);
  expect(policy.refused).toEqual([]);
  expect(policy.refusal(name('example.com'), 443)).toBeUndefined();
  expect(policy.refusal(name('example.com'), 22)).toBe('host_not_allowed');
  expect(policy.refusal(name('evil.example'), 443)).toBe('host_not_allowed');
});

test('egressPolicy allows only hosts that both the environment and the list of the operator allow', () => {
  const policy = egressPolicy(['*.example.com', 'other.example'], operator('api.example.com, third.example'));
  expect(policy.allowed).toEqual(['api.example.com']);
  expect(policy.refused).toEqual(['other.example']);
  expect(policy.refusal(name('api.example.com'), 443)).toBeUndefined();
  expect(policy.refusal(name('www.example.com'), 443)).toBe('operator');
  expect(policy.refusal(name('third.example'), 443)).toBe('host_not_allowed');
});

test('egressPolicy allows no host if the operator allows none', () => {
  const policy = egressPolicy(['example.com'], operator('none'));
  expect([policy.allowed, policy.refused]).toEqual([[], ['example.com']]);
  expect(policy.refusal(name('example.com'), 443)).toBe('operator');
});

test('egressPolicy allows no host for an invalid rule', () => {
  expect(egressPolicy(['*'], 'any')).toMatchObject({ allowed: [], refused: ['*'] });
});

test('a setting RUNYARD_EGRESS that contains something other than hosts is refused', () => {
  expect(parseSettings({ RUNYARD_EGRESS: 'example.com,https://x/' })).toMatchObject({ ok: false });
});

test('addresses of this machine and of private networks are refused unless the operator names them', () => {
  const rules = egressAddresses([]);
  const own = Object.values(os.networkInterfaces()).flatMap((found) => found?.map(({ address }) => address) ?? []);
  for (const address of ['127.0.0.1', '10.0.0.1', '168.63.129.16', '::ffff:8.8.8.8', '64:ff9b::808:808', ...own])
    expect(rules(address)).toBe('refused');
  expect(rules('8.8.8.8')).toBe('public');
  expect(egressAddresses(['127.0.0.0/8'])('127.0.0.1')).toBe('allowed');
});
