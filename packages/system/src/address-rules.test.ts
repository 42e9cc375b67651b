import { describe, expect, test } from 'vitest';
import { isLoopback, makeAddressRules } from './address-rules.ts';

const rules = makeAddressRules([]);

test.each([
  '0.0.0.0',
  '0.1.2.3',
  '10.0.0.1',
  '100.64.0.1',
  '100.127.255.255',
  '127.0.0.1',
  '127.255.255.254',
  '169.254.0.1',
  '169.254.169.254',
  '172.16.0.1',
  '172.31.255.255',
  '192.0.0.192',
  '192.0.2.1',
  '168.63.129.16',
  '192.88.99.1',
  '192.168.1.1',
  '198.18.0.1',
  '198.19.255.255',
  '198.51.100.1',
  '203.0.113.1',
  '224.0.0.1',
  '239.255.255.255',
  '240.0.0.1',
  '255.255.255.255',
  '::',
  '::1',
  '::ffff:127.0.0.1',
  '::ffff:7f00:1',
  '::ffff:8.8.8.8',
  '::7f00:1',
  '64:ff9b::a9fe:a9fe',
  '64:ff9b:1::1',
  '100::1',
  '2001::1',
  '2001:10::1',
  '2001:db8::1',
  '2002:7f00:1::',
  '3fff::1',
  '5f00::1',
  'fc00::1',
  'fd00:ec2::254',
  'fe80::1',
  'fe80::1%eth0',
  '2606:4700::1%eth0',
  'fec0::1',
  'ff02::1',
  '',
  'localhost',
  '127.1',
  '2130706433',
])('the function of makeAddressRules returns refused for %s', (address) => {
  expect(rules(address)).toBe('refused');
});

test.each([
  '1.1.1.1',
  '8.8.8.8',
  '9.255.255.255',
  '11.0.0.0',
  '100.63.255.255',
  '100.128.0.0',
  '126.255.255.255',
  '128.0.0.1',
  '169.253.255.255',
  '169.255.0.0',
  '172.15.255.255',
  '172.32.0.0',
  '192.167.255.255',
  '198.17.255.255',
  '198.20.0.0',
  '223.255.255.255',
  '2001:4860:4860::8888',
  '2606:4700:4700::1111',
  '2a00:1450:4001::1',
])('the function of makeAddressRules returns public for %s', (address) => {
  expect(rules(address)).toBe('public');
});

describe('the function of makeAddressRules, if the operator allows networks,', () => {
  const allowing = makeAddressRules(['10.20.0.0/16', 'fd00:1::/32', '127.0.0.1/32']);

  test.each(['10.20.0.1', '10.20.255.255', 'fd00:1::5', '127.0.0.1'])('returns allowed for %s', (address) => {
    expect(allowing(address)).toBe('allowed');
  });

  test.each(['10.21.0.1', '127.0.0.2', '169.254.169.254', 'fd00:2::1', '::1'])(
    'still returns refused for %s',
    (address) => {
      expect(allowing(address)).toBe('refused');
    },
  );

  test('still returns public for a public address', () => {
    expect(allowing('8.8.8.8')).toBe('public');
  });
});

test.each([
  ['http://localhost:1', true],
  ['http://127.0.0.1:1', true],
  ['http://127.8.9.1', true],
  ['http://2130706433', true],
  ['http://[::1]:1', true],
  ['http://127.0.0.1.evil.example:1', false],
  ['http://127.evil.example', false],
  ['http://localhost.evil.example', false],
  ['http://127.0.0.1@evil.example', false],
  ['http://[::2]', false],
  ['http://128.0.0.1', false],
])('the address %s leads to this machine: %s', (address, expected) => {
  expect(isLoopback(new URL(address))).toBe(expected);
});
