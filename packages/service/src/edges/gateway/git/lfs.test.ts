import { createHash, randomBytes } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import Fastify, { type FastifyInstance } from 'fastify';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type FakeGitHost, startFakeGitHost } from '../../../../../../test/fakes/git-host.ts';
import { type FakeLfsStore, startFakeLfsStore } from '../../../../../../test/fakes/lfs-store.ts';
import { closeAtEnd } from '../../../../../../test/support/close-at-end.ts';
import { makeBodyBudget } from '../../../platform/bodies/body-budget.ts';
import { type GitGatewayDeps, registerGitGateway } from './git.ts';

const token = 'run-token-0123456789abcdef';
const content = randomBytes(200_000);
const oid = createHash('sha256').update(content).digest('hex');
const path = '/api/v1/gateway/git/acme/site.git/info/lfs/objects';

const recorded: unknown[] = [];
const usualPushes = {
  protectedBranchesOf: async () => ['HEAD'],
  areHeld: async () => false,
  whyRepositoriesStay: async () => undefined,
  recordUpload: async (...given: unknown[]) => void recorded.push(given.slice(1)),
  isAtWork: async () => true,
};

let host: FakeGitHost;
let store: FakeLfsStore;
let app: FastifyInstance | undefined;
let url = '';
let lines: string[] = [];
beforeEach(async () => {
  lines = [];
  store = closeAtEnd(await startFakeLfsStore());
  host = closeAtEnd(await startFakeGitHost({ api: store.api }));
  store.add('acme/site', content);
});
afterEach(async () => {
  await app?.close();
});

async function start(changes: Partial<GitGatewayDeps> = {}): Promise<void> {
  const write = (fields: object, message: string): void => void lines.push(JSON.stringify([message, fields]));
  app = Fastify({ forceCloseConnections: true });
  await registerGitGateway(app, {
    codeHostUrl: host.template,
    allowedNetworks: ['127.0.0.0/8'],
    resolve: async () => [],
    authenticateRunToken: async (given) =>
      given === token ? ({ runId: 'run', executionId: 'execution', teamId: 'team', token } as never) : null,
    repositoriesOf: async () => [{ owner: 'acme', repo: 'site' }],
    credentialFor: async () => ({
      kind: 'credential',
      id: 'c',
      credential: { username: 'u', password: 'secret-of-the-host' },
      refused: () => {},
    }),
    pushes: usualPushes as never,
    bodies: makeBodyBudget(),
    log: { info: write, warn: write, error: write },
    ...changes,
  });
  await app.listen({ port: 0, host: '127.0.0.1' });
  url = `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`;
}

const send = (to: string, init: RequestInit = {}) =>
  fetch(`${url}${to}`, { ...init, headers: { authorization: `Bearer ${token}`, ...init.headers } });

const batch = async (operation: string, objects: readonly object[], of = path) => {
  const answer = await send(`${of}/batch`, { method: 'POST', body: JSON.stringify({ operation, objects }) });
  return { status: answer.status, text: await answer.text() };
};

const object = { oid, size: content.byteLength };
const place = `${path}/${oid}?size=${content.byteLength}`;

describe('Git LFS behind the gateway', () => {
  it('names only paths of the gateway for the objects, and downloads an object with the header of the code host', async () => {
    await start();
    const { status, text } = await batch('download', [object, { oid: '0'.repeat(64), size: 3 }]);
    expect(status).toBe(200);
    expect(JSON.parse(text)).toMatchObject({
      objects: [{ ...object, actions: { download: { href: place } } }, { error: { code: 404 } }],
    });
    const answer = await send(place);
    expect([answer.status, Buffer.from(await answer.arrayBuffer()).equals(content)]).toEqual([200, true]);
    for (const hidden of [store.signature, store.url, 'secret-of-the-host'])
      expect(`${text}${JSON.stringify([...answer.headers])}${lines.join()}`).not.toContain(hidden);
    const sent = host.requests.find(({ url: asked }) => asked.endsWith('/objects/batch'));
    expect(sent?.headers.authorization).toBe(`Basic ${Buffer.from('u:secret-of-the-host').toString('base64')}`);
  });

  it('uploads an object, and does not upload an object that the code host has', async () => {
    await start();
    const fresh = randomBytes(100_000);
    const added = { oid: createHash('sha256').update(fresh).digest('hex'), size: fresh.byteLength };
    const { text } = await batch('upload', [added, object]);
    const href = `${path}/${added.oid}?size=${added.size}`;
    expect(JSON.parse(text)).toMatchObject({ objects: [{ actions: { upload: { href } } }, object] });
    expect((await send(href, { method: 'PUT', body: fresh })).status).toBe(200);
    expect(store.read('acme/site', added.oid)?.equals(fresh)).toBe(true);
    expect((await send(place, { method: 'PUT', body: content })).status).toBe(200);
    expect(recorded).toEqual([[{ owner: 'acme', repo: 'site' }, added]]);
  });

  it('refuses objects of a repository that the run does not have', async () => {
    await start();
    store.add('acme/other', content);
    const other = path.replace('/site.git/', '/other.git/');
    expect((await batch('download', [object], other)).status).toBe(403);
    expect((await send(place.replace('/site.git/', '/other.git/'))).status).toBe(403);
    expect(host.requests.filter(({ url: asked }) => asked.includes('other'))).toEqual([]);
  });

  it('gives an object only if the repository has it, even if another repository has it too', async () => {
    await start();
    const secret = randomBytes(1_000);
    store.add('acme/other', secret);
    const wanted = createHash('sha256').update(secret).digest('hex');
    expect((await send(`${path}/${wanted}?size=1000`)).status).toBe(404);
  });

  it.each([
    ['without a run token', place, { headers: { authorization: 'Bearer other' } }, 401],
    ['for a name that is no SHA-256', `${path}/../../secret?size=1`, {}, 404],
    ['without a size', `${path}/${oid}`, {}, 404],
    ['for another size', `${path}/${oid}?size=7`, {}, 502],
    ['with a body of another size', place, { method: 'PUT', body: 'short' }, 422],
    ['with a batch that is no JSON', `${path}/batch`, { method: 'POST', body: '[' }, 422],
  ])('refuses a request %s', async (_, to, init, status) => {
    await start();
    expect((await send(to, init)).status).toBe(status);
  });

  it('refuses objects that are larger than the limit', async () => {
    await start({ maxPushBytes: 1_000 });
    expect(JSON.parse((await batch('download', [object])).text)).toMatchObject({ objects: [{ error: { code: 413 } }] });
    expect((await send(place)).status).toBe(413);
    expect((await send(place, { method: 'PUT', body: content })).status).toBe(413);
  });

  it('refuses batches with too many objects', async () => {
    await start();
    expect(
      (
        await batch(
          'download',
          Array.from({ length: 101 }, () => object),
        )
      ).status,
    ).toBe(422);
  });

  it.each([
    ['may push nothing', { protectedBranchesOf: async () => ['*'] }],
    ['needs an approval for each push', { areHeld: async () => true }],
    ['only plans', { whyRepositoriesStay: async () => 'planned' }],
    ['is stopping', { isAtWork: async () => false }],
  ])('refuses uploads of a run that %s', async (_, forbids) => {
    await start({ pushes: { ...usualPushes, ...forbids } as never });
    expect((await batch('upload', [{ ...object, oid: '1'.repeat(64) }])).status).toBe(403);
    expect((await send(place, { method: 'PUT', body: content })).status).toBe(403);
    expect((await send(place)).status).toBe(200);
  });

  it('refuses an address in a private network that the code host names', async () => {
    await start({ allowedNetworks: [] });
    const answer = await send(place);
    expect([answer.status, await answer.text()]).toEqual([502, expect.stringContaining('not a public address')]);
    store.misnamed = 'file:///etc/passwd?';
    expect((await send(place)).status).toBe(502);
  });
});
