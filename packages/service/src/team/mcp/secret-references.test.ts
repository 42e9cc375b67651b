// biome-ignore-all lint/suspicious/noTemplateCurlyInString: these are names of secrets in configurations
import { describe, expect, test } from 'vitest';
import { faultsOfSecrets, putSecrets, secretsByForm, secretsOfServers } from './secret-references.ts';

const url = 'https://example.com/mcp';

test('the names of secrets are found in variables and headers of servers, each name at most once for variables and once for headers', () => {
  const servers = {
    near: { command: 'x', args: ['${ARGUMENT}'], env: { A: '${TOKEN}', B: 'Bearer ${TOKEN}:${OTHER}' } },
    far: { url: `${url}?\${QUERY}`, headers: { Authorization: 'Bearer ${TOKEN}' } },
    stored: { warp_id: '1', env: { A: '${STORED}' }, headers: { a: '${STORED}' } },
    text: { command: 'y', env: { A: '$TOKEN ${} ${1A} ${a-b} ${A} ${' } },
  };
  expect(secretsOfServers(servers)).toEqual([
    { name: 'TOKEN', as: 'mcp_variable', path: 'config.mcp_servers.near.env.A' },
    { name: 'OTHER', as: 'mcp_variable', path: 'config.mcp_servers.near.env.B' },
    { name: 'TOKEN', as: 'mcp_header', path: 'config.mcp_servers.far.headers.Authorization' },
    { name: 'A', as: 'mcp_variable', path: 'config.mcp_servers.text.env.A' },
  ]);
});

test.each([
  ['Bearer ${TOKEN}', 'Bearer value-$&-${OTHER}'],
  ['${TOKEN}${TOKEN}', 'value-$&-${OTHER}value-$&-${OTHER}'],
  ['${NEITHER} $TOKEN', '${NEITHER} $TOKEN'],
])("in %j, a secret's value replaces its name, and names inside the value are not replaced", (text, expected) => {
  const secrets = new Map([
    ['TOKEN', 'value-$&-${OTHER}'],
    ['OTHER', 'another'],
  ]);
  const { values, used } = putSecrets({ A: text }, secrets);
  expect(values).toEqual({ A: expected });
  expect(used).toEqual(expected === text ? [] : ['value-$&-${OTHER}']);
});

describe('the check of secret values in a server', () => {
  const secrets = secretsByForm([
    { name: 'LINES', as: 'mcp_header', value: 'secret-value\r\nhost: evil' },
    { name: 'LINES', as: 'mcp_variable', value: 'secret-value\nof two lines' },
    { name: 'UMLAUT', as: 'mcp_header', value: 'secret-value-Ω' },
    { name: 'LONG', as: 'mcp_header', value: 'secret-value'.repeat(1_000) },
    { name: 'LONG', as: 'mcp_variable', value: 'secret-value'.repeat(1_000) },
    { name: 'PLAIN', as: 'mcp_header', value: 'secret-value' },
    { name: 'SANDBOX', as: 'variable', value: 'secret-value\n' },
  ]);

  test.each([
    [
      'a line break in a header',
      { url, headers: { a: '${LINES}' } },
      /headers\.a.*not a valid value of an HTTP header.*line break/,
    ],
    [
      'a character that headers do not have',
      { url, headers: { a: '${UMLAUT}' } },
      /not a valid value of an HTTP header/,
    ],
    ['a long header', { url, headers: { a: '${LONG}' } }, /at most 8192/],
    ['many times one value', { command: 'x', env: { A: '${LONG}'.repeat(100_000) } }, /env\.A.*longer than 32768/],
    ['a line break in a variable', { command: 'x', env: { A: '${LINES}' } }, null],
    ['a plain value', { url, headers: { a: 'Bearer ${PLAIN}' } }, null],
    ['a secret that servers do not get', { url, headers: { a: '${SANDBOX}' } }, null],
  ])('finds a fault, or none, for %s', (_, server, message) => {
    const faults = faultsOfSecrets({ x: server }, secrets).map(({ path, message }) => `${path} ${message}`);
    expect(faults).toEqual(message === null ? [] : [expect.stringMatching(message)]);
    expect(faults.join()).not.toContain('secret-value');
  });
});
