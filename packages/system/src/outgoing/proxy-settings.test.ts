import http from 'node:http';
import { expect, test } from 'vitest';
import { useProxy } from './outgoing.ts';
import { readProxySettings } from './proxy-settings.ts';

const proxy = 'http://127.0.0.1:1';

test.each([
  ['', 'https://a.example/', false],
  ['a.example', 'https://a.example/', true],
  ['a.example', 'https://b.a.example/', true],
  ['a.example', 'https://ba.example/', false],
  ['.a.example', 'https://a.example/', true],
  ['*.a.example', 'https://b.a.example/', true],
  ['b.example, a.example', 'https://a.example/', true],
  ['a.example:443', 'https://a.example/', true],
  ['a.example:443', 'https://a.example:8443/', false],
  ['*', 'https://a.example/', true],
  ['', 'http://a.example/', false],
  ['', 'https://localhost:4180/', true],
])('with NO_PROXY=%s, a connection to %s is direct: %s; Node decides the same', async (noProxy, address, isDirect) => {
  const env = { HTTPS_PROXY: proxy, HTTP_PROXY: proxy, NO_PROXY: noProxy };
  const url = new URL(address);
  expect(readProxySettings(env)?.proxyOf(url) === undefined).toBe(isDirect);
  if (url.hostname === 'localhost') return;
  useProxy(env);
  try {
    // Nothing listens at the proxy, and the names do not exist.
    const expected = isDirect ? /ENOTFOUND|EAI_AGAIN/ : /ECONNREFUSED/;
    const { request } = url.protocol === 'https:' ? process.getBuiltinModule('node:https') : http;
    const fault = await new Promise((resolve) =>
      request(url, () => {})
        .on('error', resolve)
        .end(),
    );
    expect(fault).toMatchObject({ code: expect.stringMatching(expected) });
    const failed = fetch(url).catch((error: Error) => error.cause);
    expect(await failed).toMatchObject({ code: expect.stringMatching(expected) });
  } finally {
    useProxy({});
  }
});

test.each([
  ['10.0.0.0/8', 'https://10.255.0.1/', true],
  ['10.0.0.0/8', 'https://11.0.0.1/', false],
  ['192.0.2.7', 'https://192.0.2.7/', true],
  ['[2001:db8::1]:8443', 'https://[2001:db8::1]:8443/', true],
  ['2001:db8::1', 'https://[2001:db8::1]/', true],
  ['', 'https://127.1.2.3/', true],
  ['', 'https://[::1]/', true],
  ['', 'https://169.254.169.254/', true],
  ['', 'https://a.localhost./', true],
  ['a.example', 'https://A.Example./', true],
])('with NO_PROXY=%s, a connection to %s is direct: %s', (noProxy, address, isDirect) => {
  const settings = readProxySettings({ https_proxy: proxy, no_proxy: noProxy });
  expect(settings?.proxyOf(new URL(address)) === undefined).toBe(isDirect);
});

test('Node gets networks as ranges of addresses', () => {
  const settings = readProxySettings({ https_proxy: proxy, no_proxy: '10.1.0.0/16,192.168.7.9/30' });
  expect(settings?.forNode.no_proxy).toContain('10.1.0.0-10.1.255.255,192.168.7.8-192.168.7.11');
});

test('HTTP_PROXY is also for https if HTTPS_PROXY is absent, and a variable in lower case has priority', () => {
  const of = (env: Record<string, string>, url: string) => readProxySettings(env)?.proxyOf(new URL(url))?.host;
  expect(of({ HTTP_PROXY: 'one.example:1' }, 'https://a.example/')).toBe('one.example:1');
  expect(of({ HTTPS_PROXY: 'http://one.example:1' }, 'http://a.example/')).toBeUndefined();
  expect(of({ HTTPS_PROXY: 'http://one.example:1', https_proxy: 'http://two.example:1' }, 'wss://a.example/')).toBe(
    'two.example:1',
  );
});

test.each(['socks5://one.example:1', 'ftp://one.example', 'http://user:%zz-secret@one.example:1'])(
  'the value %s is refused with the name of the variable and without the value',
  (value) => {
    let message = '';
    try {
      readProxySettings({ HTTPS_PROXY: value });
    } catch (error) {
      message = (error as Error).message;
    }
    expect(message).toMatch(/^HTTPS_PROXY: must be the address of an HTTP proxy/);
    expect(message).not.toContain(value);
  },
);
