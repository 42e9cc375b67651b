import { makeAddressRules } from '@runyard/system/address-rules';
import { describe, expect, test } from 'vitest';
import { checkUrl } from './check-url.ts';

const rules = makeAddressRules([]);

describe('the URL of a subscription', () => {
  test.each([
    'https://example.com/hook',
    'https://example.com:443/',
    'https://example.com:8443/x?y=z',
    'https://8.8.8.8/',
    'https://[2606:4700:4700::1111]/',
  ])('accepts %s', (url) => {
    expect(checkUrl(url, rules, false)).toBeNull();
  });

  test.each([
    'nonsense',
    '/relative',
    'ftp://example.com/',
    'file:///etc/passwd',
    'javascript:1',
    'http://example.com/',
    'https://user:secret@example.com/',
    'https://user@example.com/',
    'https://example.com:22/',
    'https://example.com:25/',
    'https://example.com:1023/',
    'https://127.0.0.1/',
    'https://127.1/',
    'https://2130706433/',
    'https://0x7f000001/',
    'https://0177.0.0.1/',
    'https://[::1]/',
    'https://[::ffff:127.0.0.1]/',
    'https://[::ffff:a9fe:a9fe]/',
    'https://169.254.169.254/latest/meta-data',
  ])('refuses %s', (url) => {
    expect(checkUrl(url, rules, false)).toMatchObject({ path: 'url' });
  });

  test('accepts http for allowed private networks only', () => {
    const allowing = makeAddressRules(['10.0.0.0/8']);
    expect(checkUrl('http://10.1.2.3:8080/', allowing, true)).toBeNull();
    expect(checkUrl('http://hooks.internal/', allowing, true)).toBeNull();
    expect(checkUrl('http://192.168.0.1/', allowing, true)).not.toBeNull();
  });
});
