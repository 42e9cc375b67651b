import type { LookupAddress } from 'node:dns';
import { makeAddressRules } from '@runyard/system/address-rules';
import { makeNameResolver, systemNames } from '@runyard/system/names/resolver';
import { beforeEach, describe, expect, test } from 'vitest';
import { startFakeNameServer } from '../../../../../test/fakes/name-server.ts';
import { startFakeWebhookReceiver } from '../../../../../test/fakes/webhook-receiver.ts';
import { closeAtEnd } from '../../../../../test/support/close-at-end.ts';
import type { Resolve } from '../../platform/check-address.ts';
import { type SendOptions, send } from './send.ts';

const receiver = closeAtEnd(await startFakeWebhookReceiver());
beforeEach(() => receiver.behave({ status: 204 }));

const loopback = makeAddressRules(['127.0.0.0/8']);
const never = new AbortController().signal;
const post = (url: string, options: Partial<SendOptions> = {}) =>
  send(
    { url, body: '{"a":1}', headers: { 'x-a': 'b', 'content-type': 'application/json' } },
    { rules: loopback, resolve: systemNames.resolve, timeoutMs: 60_000, signal: never, ...options },
  );
const v4 = (address: string): LookupAddress => ({ address, family: 4 });
const resolvesTo =
  (...addresses: string[]): Resolve =>
  async () =>
    addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }));

describe('a request sender', () => {
  test.each([
    ['an address that is not public', 'http://127.0.0.1:PORT/', {}],
    ['a name that leads to one', 'http://example.test:PORT/', { resolve: resolvesTo('127.0.0.1') }],
    [
      'a name with one public and one private address',
      'http://example.test:PORT/',
      { resolve: resolvesTo('8.8.8.8', '127.0.0.1') },
    ],
    ['a name that leads to a mapped address', 'http://example.test:PORT/', { resolve: resolvesTo('::ffff:127.0.0.1') }],
    ['localhost', 'http://localhost:PORT/', {}],
  ])('sends nothing to %s', async (_, url, options) => {
    const before = receiver.received.length;
    const outcome = await post(url.replace('PORT', String(receiver.port)), { rules: makeAddressRules([]), ...options });
    expect(outcome).toEqual({
      kind: 'failed',
      error: 'the URL resolves to an address that is neither public nor in RUNYARD_ALLOW_PRIVATE_NETWORKS',
    });
    expect(receiver.received).toHaveLength(before);
  });

  test('sends nothing without TLS to a public address', async () => {
    const outcome = await post('http://example.test/', { resolve: resolvesTo('8.8.8.8') });
    expect(outcome).toEqual({ kind: 'failed', error: 'https is needed for a public address' });
  });

  test('sends nothing to a name without an address', async () => {
    expect(await post('http://example.test/', { resolve: resolvesTo() })).toMatchObject({ kind: 'failed' });
  });

  test('connects to the checked address, even if the name has another address a moment later', async () => {
    const answers = [[v4('127.0.0.1')], [v4('127.0.0.99')], [v4('169.254.169.254')]];
    let asked = 0;
    const resolve: Resolve = async () => answers[asked++] ?? [];
    const rules = makeAddressRules(['127.0.0.1/32']);
    const outcome = await post(`http://rebinding.test:${receiver.port}/x`, { resolve, rules });
    expect(outcome).toMatchObject({ kind: 'answered', status: 204 });
    expect(asked).toBe(1);
    expect(receiver.received.at(-1)?.headers.host).toBe(`rebinding.test:${receiver.port}`);
    // The next attempt looks the name up again.
    const again = await post(`http://rebinding.test:${receiver.port}/x`, { resolve, rules });
    expect(again).toEqual({
      kind: 'failed',
      error: 'the URL resolves to an address that is neither public nor in RUNYARD_ALLOW_PRIVATE_NETWORKS',
    });
  });

  test('tries the next address if the first address does not answer', async () => {
    const resolve = resolvesTo('127.0.0.77', '127.0.0.1');
    expect(await post(`http://two.test:${receiver.port}/`, { resolve })).toMatchObject({ status: 204 });
  });
});

describe('the handling of an answer', () => {
  test('returns the status and Retry-After of the answer as the outcome', async () => {
    receiver.behave({ status: 503, headers: { 'retry-after': '7' }, body: 'later' });
    expect(await post(receiver.url)).toEqual({ kind: 'answered', status: 503, retryAfter: '7' });
    expect(receiver.received.at(-1)).toMatchObject({ method: 'POST', body: '{"a":1}', headers: { 'x-a': 'b' } });
  });

  test('follows no redirect', async () => {
    receiver.behave({ status: 307, headers: { location: receiver.url } });
    const before = receiver.received.length;
    expect(await post(receiver.url)).toMatchObject({ kind: 'answered', status: 307 });
    expect(receiver.received).toHaveLength(before + 1);
  });

  test('stops reading an endless body', async () => {
    receiver.behave('endless body');
    expect(await post(receiver.url)).toMatchObject({ kind: 'answered', status: 200 });
  });

  test('treats an answer that switches to another protocol as a failure', async () => {
    receiver.behave('switch protocols');
    expect(await post(receiver.url)).toEqual({
      kind: 'failed',
      error: 'the connection was closed without an answer',
    });
  });

  test('ends a silent request after the time limit', async () => {
    receiver.behave('hang');
    expect(await post(receiver.url, { timeoutMs: 100 })).toEqual({ kind: 'failed', error: 'no answer within 0.1 s' });
  });

  test('ends an endless name look-up after the time limit', async () => {
    const resolve = () => new Promise<never>(() => undefined);
    const outcome = await post('http://slow.test/', { resolve, timeoutMs: 100 });
    expect(outcome).toEqual({ kind: 'failed', error: 'no answer within 0.1 s' });
  });

  test('ends a look-up if the name server does not answer, and delays no other look-up', async () => {
    const server = await startFakeNameServer({ 'good.test': ['127.0.0.1'] }, (name) => name === 'silent.test');
    const { resolve } = makeNameResolver({ servers: [server.address], timeoutMs: 60_000 });
    const stop = new AbortController();
    const silent = Array.from({ length: 32 }, () =>
      post('http://silent.test/', { resolve, timeoutMs: 60_000, signal: stop.signal }),
    );
    await expect.poll(() => server.questions.length).toBeGreaterThan(0);
    expect(await post(`http://good.test:${receiver.port}/`, { resolve })).toMatchObject({ status: 204 });
    stop.abort();
    for (const outcome of await Promise.all(silent))
      expect(outcome).toEqual({ kind: 'failed', error: 'the service was stopped' });
    // The 32 requests must cause only one look-up of each kind.
    expect(server.questions.filter((each) => each === 'silent.test A').length).toBeLessThan(32);
    await server.close();
  });

  test('reports names that cannot be resolved or do not exist, with the reason', async () => {
    const server = await startFakeNameServer({}, (name) => name === 'silent.test');
    const { resolve } = makeNameResolver({ servers: [server.address], timeoutMs: 200 });
    expect(await post('http://silent.test/', { resolve })).toEqual({
      kind: 'failed',
      error: 'the host name could not be looked up',
    });
    expect(await post('http://nothing.test/', { resolve })).toEqual({
      kind: 'failed',
      error: 'the host name does not exist',
    });
    await server.close();
  });

  test('reports a connection that was reset and a closed port, with the reason', async () => {
    receiver.behave('reset');
    expect(await post(receiver.url)).toEqual({ kind: 'failed', error: 'the connection was reset' });
    const gone = await startFakeWebhookReceiver();
    await gone.close();
    expect(await post(gone.url)).toEqual({ kind: 'failed', error: 'the connection was refused' });
  });

  test('reports a server without TLS behind an https URL', async () => {
    const outcome = await post(`https://127.0.0.1:${receiver.port}/`);
    expect(outcome).toMatchObject({ kind: 'failed', error: 'the server does not speak TLS' });
  });
});

test('a request sender ends its unfinished requests when it stops', async () => {
  receiver.behave('hang');
  const stop = new AbortController();
  const before = receiver.received.length;
  const sent = post(receiver.url, { signal: stop.signal });
  await expect.poll(() => receiver.received.length).toBe(before + 1);
  stop.abort();
  expect(await sent).toEqual({ kind: 'failed', error: 'the service was stopped' });
});
