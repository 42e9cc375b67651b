import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { type FakeNameServer, startFakeNameServer } from '../../../../test/fakes/name-server.ts';
import { closeAtEnd, newFolder } from '../../../../test/support/close-at-end.ts';
import { makeNameResolver, type ResolverOptions } from './resolver.ts';

let server: FakeNameServer;
const folder = newFolder();
await writeFile(path.join(folder, 'hosts'), '# a comment\n10.1.2.3 Gateway.internal other # last\nfd00::1 other\n');
await writeFile(path.join(folder, 'resolv.conf'), 'search ns.svc.test svc.test\noptions timeout:1 ndots:2\n');
beforeEach(async () => {
  const known = { 'good.test': ['192.0.2.1', '192.0.2.2'], 'hooks.svc.test': ['192.0.2.3'], 'a.b.c': ['192.0.2.4'] };
  server = closeAtEnd(await startFakeNameServer(known, (name) => name.includes('silent')));
});

const make = (changes: Partial<ResolverOptions> = {}) =>
  makeNameResolver({
    servers: [server.address],
    hostsFile: path.join(folder, 'hosts'),
    resolvConf: path.join(folder, 'none'),
    ...changes,
  });
const addressesOf = async (name: string, changes: Partial<ResolverOptions> = {}) =>
  (await make(changes).resolve(name)).map(({ address }) => address);

describe('a name resolver', () => {
  test('finds all addresses of a name', async () => {
    expect(await make().resolve('good.test')).toEqual([
      { address: '192.0.2.1', family: 4 },
      { address: '192.0.2.2', family: 4 },
    ]);
  });

  test('uses the addresses of the hosts file, without a query', async () => {
    expect(await addressesOf('gateway.internal')).toEqual(['10.1.2.3']);
    expect(await addressesOf('OTHER')).toEqual(['10.1.2.3', 'fd00::1']);
    expect(server.questions).toEqual([]);
  });

  test('searches a short name in the domains of resolv.conf', async () => {
    const resolvConf = path.join(folder, 'resolv.conf');
    expect(await addressesOf('hooks', { resolvConf })).toEqual(['192.0.2.3']);
    expect(await addressesOf('a.b.c', { resolvConf })).toEqual(['192.0.2.4']);
    await expect(addressesOf('hooks.', { resolvConf })).rejects.toMatchObject({ code: 'ENOTFOUND' });
  });

  test('rejects with ENOTFOUND if a name does not exist', async () => {
    await expect(addressesOf('nothing.test')).rejects.toMatchObject({ code: 'ENOTFOUND' });
  });

  test('rejects within the time limit of the look-up if no name server answers', async () => {
    const startedAt = performance.now();
    await expect(addressesOf('silent.test', { timeoutMs: 200 })).rejects.toMatchObject({ code: 'EAI_AGAIN' });
    expect(performance.now() - startedAt).toBeLessThan(10_000);
  });

  test('finds other names while a hundred look-ups get no answer', async () => {
    const resolver = make({ timeoutMs: 60_000 });
    const leaving = new AbortController();
    const silent = Array.from({ length: 100 }, (_, n) => resolver.resolve(`silent${n}.test`, leaving.signal));
    const ended = Promise.allSettled(silent);
    await expect.poll(() => server.questions.length).toBeGreaterThanOrEqual(200);
    expect(await resolver.resolve('good.test')).toHaveLength(2);
    leaving.abort(new Error('enough'));
    expect(new Set((await ended).map((each) => each.status === 'rejected' && each.reason.message))).toEqual(
      new Set(['enough']),
    );
  });

  test('sends one query for all callers that wait for the same name', async () => {
    const resolver = make();
    await Promise.all(Array.from({ length: 20 }, () => resolver.resolve('good.test')));
    expect(server.questions.toSorted()).toEqual(['good.test A', 'good.test AAAA']);
  });

  test('continues a look-up for the other callers if one caller stops waiting', async () => {
    const resolver = make({ timeoutMs: 1_000 });
    const leaving = new AbortController();
    const first = resolver.resolve('silent.test', leaving.signal);
    const second = resolver.resolve('silent.test');
    leaving.abort(new Error('enough'));
    await expect(first).rejects.toThrow('enough');
    await expect(second).rejects.toMatchObject({ code: 'EAI_AGAIN' });
  });

  test('sends a new query for the next caller if all earlier callers have aborted their look-up of the name', async () => {
    const resolver = make({ timeoutMs: 60_000 });
    for (const count of [2, 4]) {
      const leaving = new AbortController();
      const asked = resolver.resolve('silent.test', leaving.signal);
      await expect.poll(() => server.questions.length).toBe(count);
      leaving.abort(new Error('enough'));
      await expect(asked).rejects.toThrow('enough');
    }
  });
});

test('the function lookup resolves names for sockets, and returns only addresses of the requested family', async () => {
  const { lookup } = make();
  const ask = (host: string, options: Parameters<typeof lookup>[1]) =>
    new Promise((resolve, reject) => {
      lookup(host, options, (error, found, family) => (error ? reject(error) : resolve([found, family])));
    });
  expect(await ask('good.test', {})).toEqual(['192.0.2.1', 4]);
  expect(await ask('other', { family: 6 })).toEqual(['fd00::1', 6]);
  await expect(ask('good.test', { family: 'IPv6' })).rejects.toMatchObject({ code: 'ENOTFOUND' });
});
