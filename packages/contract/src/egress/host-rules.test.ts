import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { readAuthority, readHost } from './host-name.ts';
import { covers, formatRule, type HostRule, intersectRules, ipv6Pattern, readHostRule } from './host-rules.ts';
import { EnvironmentNetwork } from './network.ts';
import { networkPresets } from './presets.ts';

function rule(text: string): HostRule {
  const read = readHostRule(text);
  if (read === undefined) throw new Error(`${text} is no rule`);
  return read;
}

describe('a host', () => {
  test.each([
    ['Example.COM', 'example.com'],
    ['example.com.', 'example.com'],
    ['xn--bcher-kva.example', 'xn--bcher-kva.example'],
    ['_srv.example.com', '_srv.example.com'],
    ['203.0.113.7', '203.0.113.7'],
    ['[2001:DB8:0:0::1]', '2001:db8::1'],
    ['[::ffff:127.0.0.1]', '::ffff:7f00:1'],
  ])('reads %s as %s', (text, host) => {
    expect(readHost(text)?.host).toBe(host);
  });

  test.each([
    ...['', '.', 'example..com', '.example.com', 'example.com..', '-a.com', 'a-.com', 'a b.com', 'a\tb', 'a\0.com'],
    ...['2130706433', '0x7f000001', '0177.0.0.1', '127.1', '0x7f.1', '1.2.3.4.5', '127.0.0.1.', '256.0.0.1', '1.0x7f'],
    ...['::1', '[::1', '[fe80::1%eth0]', '[1.2.3.4]', 'user@example.com', 'bücher.example', `${'a.'.repeat(140)}com`],
  ])('refuses %j', (text) => {
    expect(readHost(text)).toBeUndefined();
  });

  test.each(['example.com:0', 'example.com:65536', 'example.com:', 'example.com:x', 'example.com', '::1:443', 'a:1:2'])(
    'with a port is not %j',
    (text) => {
      expect(readAuthority(text)).toBeUndefined();
    },
  );
});

describe('a rule', () => {
  test.each([
    ['example.com', 'example.com', 443, true],
    ['example.com', 'example.com', 80, true],
    ['example.com', 'example.com', 8443, false],
    ['example.com', 'www.example.com', 443, false],
    ['example.com', 'badexample.com', 443, false],
    ['*.example.com', 'www.example.com', 443, true],
    ['*.example.com', 'a.b.example.com', 443, true],
    ['*.example.com', 'example.com', 443, false],
    ['*.example.com', 'badexample.com', 443, false],
    ['*.example.com', 'example.com.evil.net', 443, false],
    ['Example.com:8443', 'example.com', 8443, true],
    ['example.com:8443', 'example.com', 443, false],
    ['203.0.113.7', '203.0.113.7', 443, true],
    ['[2001:DB8::1]:22', '2001:db8::1', 22, true],
  ])('%s covers %s on port %i: %s', (text, host, port, expected) => {
    expect(covers(rule(text), host, port)).toBe(expected);
  });

  test.each([
    '*',
    '*.',
    '*.com',
    'a.*.com',
    '**.example.com',
    'https://example.com',
    'example.com/x',
    '127.1',
    '10',
    'a:0',
  ])('is not %j', (text) => {
    expect(readHostRule(text)).toBeUndefined();
  });

  test.each([
    ['*.example.com', 'www.example.com', 'www.example.com'],
    ['www.example.com', '*.example.com', 'www.example.com'],
    ['*.example.com', '*.a.example.com', '*.a.example.com'],
    ['*.example.com', '*.example.com', '*.example.com'],
    ['example.com', 'example.com:443', 'example.com:443'],
    ['*.example.com', 'example.com', undefined],
    ['*.example.com', '*.example.org', undefined],
    ['example.com', 'example.com:8443', undefined],
  ])('%s within %s is %s', (one, other, expected) => {
    const both = intersectRules(rule(one), rule(other));
    expect(both && formatRule(both)).toBe(expected);
  });
});

test('every preset has rules', () => {
  for (const { hosts } of Object.values(networkPresets))
    for (const host of hosts) expect(readHostRule(host)).toBeDefined();
});

test.each([
  { allowed_hosts: ['*'] },
  { allowed_hosts: ['[::1::2]'] },
  { allowed_hosts: Array.from({ length: 101 }, (_, index) => `h${index}.example.com`) },
  { presets: ['rubygems'] },
])('an environment with %j is refused', (network) => {
  expect(EnvironmentNetwork.safeParse(network).success).toBe(false);
});

test('the pattern for IPv6 addresses is the same as the pattern of zod', () => {
  expect(`^${ipv6Pattern}$`).toBe(z.regexes.ipv6.source);
});
