import type { IncomingHttpHeaders } from 'node:http';
import { Socket } from 'node:net';
import { expect, test } from 'vitest';
import { trustProxies } from './trusted-proxies.ts';

const proxies = trustProxies(['10.0.0.0/8', '127.0.0.1/32', '2001:db8::/32']);

const clientOf = (peer: string, headers: IncomingHttpHeaders) => {
  const socket = new Socket();
  Object.defineProperty(socket, 'remoteAddress', { value: peer });
  return proxies.clientOf({ headers: { host: 'inside', ...headers }, socket });
};

test.each([
  ['one proxy', '127.0.0.1', '192.0.2.1', '192.0.2.1'],
  ['two proxies', '127.0.0.1', '192.0.2.1, 10.1.1.1', '192.0.2.1'],
  ['an entry that the client has forged', '127.0.0.1', '198.51.100.9, 192.0.2.1', '192.0.2.1'],
  [
    'a forged entry with the address of a proxy',
    '127.0.0.1',
    '198.51.100.9, 10.2.2.2, 192.0.2.1, 10.1.1.1',
    '192.0.2.1',
  ],
  ['no entry', '127.0.0.1', undefined, '127.0.0.1'],
  ['an entry that is no address', '127.0.0.1', '192.0.2.1, unknown', '127.0.0.1'],
  ['entries with ports', '127.0.0.1', '192.0.2.1:4711', '192.0.2.1'],
  ['an entry of IPv6 with a port', '::ffff:127.0.0.1', '[2001:db9::1]:4711', '2001:db9::1'],
  ['a proxy with IPv6', '2001:db8::5', '::ffff:192.0.2.1', '192.0.2.1'],
  ['only proxies', '127.0.0.1', '10.0.0.1, 10.0.0.2', '10.0.0.1'],
  ['a peer that is no declared proxy', '192.0.2.7', '198.51.100.9', '192.0.2.7'],
  ['a peer without an address', '', '198.51.100.9', ''],
])('the client behind %s', (_name, peer, forwarded, address) => {
  expect(clientOf(peer, forwarded === undefined ? {} : { 'x-forwarded-for': forwarded }).address).toBe(address);
});

test('the service reads scheme and host only from headers of a declared proxy, and only from the entry that this proxy added', () => {
  const headers = { 'x-forwarded-proto': 'http, https', 'x-forwarded-host': 'forged, runyard.example' };
  expect(clientOf('127.0.0.1', headers)).toEqual({ address: '127.0.0.1', scheme: 'https', host: 'runyard.example' });
  expect(clientOf('192.0.2.7', headers)).toEqual({ address: '192.0.2.7', scheme: 'http', host: 'inside' });
});

test('the service reports the address of a proxy that is not declared', () => {
  expect(clientOf('192.0.2.7', { 'x-forwarded-for': '198.51.100.9' }).undeclaredProxy).toBe('192.0.2.7');
  expect(clientOf('127.0.0.1', { 'x-forwarded-for': '198.51.100.9' })).not.toHaveProperty('undeclaredProxy');
});
