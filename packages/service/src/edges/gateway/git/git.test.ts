import { randomBytes } from 'node:crypto';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { type ClientRequest, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import Fastify, { type FastifyInstance } from 'fastify';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type FakeGitHost, type FakeGitHostOptions, startFakeGitHost } from '../../../../../../test/fakes/git-host.ts';
import { newFolder } from '../../../../../../test/support/close-at-end.ts';
import { runGit } from '../../../../test/run-git.ts';
import { defaultBodyLimits, makeBodyBudget } from '../../../platform/bodies/body-budget.ts';
import type { RunSession } from '../../../runs/executions/run-tokens/sessions.ts';
import { decidePush } from '../../../runs/repositories/pushes/decide.ts';
import { gatewayPathOf } from '../../../team/environments/git-path.ts';
import { type GitGatewayDeps, registerGitGateway } from './git.ts';
import type { PushRecord } from './push.ts';

const token = 'run-token-0123456789abcdef';

let folder: string;
let host: FakeGitHost;
let app: FastifyInstance;
let url: string;
let lines: string[];
beforeEach(() => {
  folder = newFolder();
});
afterEach(async () => {
  await app.close();
  await host.close();
});

const creator = { kind: 'user', uid: 'user' } as const;
const session: RunSession = {
  runId: 'run',
  executionId: 'execution',
  executionNumber: 1,
  teamId: 'team',
  modelId: 'runbook',
  ancestorIds: [],
  creator,
  executor: creator,
  conversationId: 'conversation',
  environmentId: 'environment',
  automationUid: null,
  factoryUid: null,
  phase: 'running',
  onlyReports: false,
  assignmentId: null,
  workerId: null,
  token,
  tokenHash: Buffer.alloc(32),
  grantedSecrets: [],
};
/** Decides about pushes by the real rules, but records no push. */
const pushes: PushRecord = {
  protectedBranchesOf: async () => [],
  isAnyBranchFollowed: async () => false,
  followedBranchesOf: async () => [],
  begin: async (_session, push) => {
    const refusals = decidePush({ ...push, own: new Map() });
    return refusals.size > 0 ? { kind: 'refused', refusals } : { kind: 'forward', numbers: [] };
  },
  answered: async () => undefined,
  areHeld: async () => false,
  recordUpload: async () => {},
  whyRepositoriesStay: async () => undefined,
  isAtWork: async () => true,
  end: async () => {},
};

async function start(options: FakeGitHostOptions = {}, changes: Partial<GitGatewayDeps> = {}): Promise<void> {
  lines = [];
  const write = (fields: object, message: string): void => void lines.push(JSON.stringify([message, fields]));
  host = await startFakeGitHost(options);
  app = Fastify({ forceCloseConnections: true });
  await registerGitGateway(app, {
    codeHostUrl: host.template,
    allowedNetworks: [],
    resolve: async () => [],
    authenticateRunToken: async (given) => (given === token ? session : null),
    repositoriesOf: async () => [{ owner: 'acme', repo: 'site' }],
    credentialFor: async () => ({ kind: 'none' }),
    pushes,
    bodies: makeBodyBudget(),
    log: { info: write, warn: write, error: write },
    ...changes,
  });
  await app.listen({ port: 0, host: '127.0.0.1' });
  url = `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`;
}

/** Returns a `credentialFor` that chooses this credential for every repository. */
const stored =
  (username: string, password: string): GitGatewayDeps['credentialFor'] =>
  async () => ({ kind: 'credential', id: 'c', credential: { username, password }, refused: () => {} });

const git = (args: string[], cwd = folder, bearer: string | null = token) =>
  runGit({ runToken: bearer, home: folder, cwd }, args);

const siteUrl = () => `${url}${gatewayPathOf({ owner: 'acme', repo: 'site' })}`;
const clone = () => git(['clone', '--quiet', siteUrl(), 'site']);

describe('the git gateway', () => {
  it('lets the real git clone and fetch, and leaves no token in the clone', async () => {
    await start();
    await host.commit('acme', 'site', { 'README.md': 'first', 'deep/file.txt': randomBytes(300_000).toString('hex') });
    expect(await clone()).toEqual({ code: 0, text: '' });
    expect(await readFile(join(folder, 'site/README.md'), 'utf8')).toBe('first');
    const later = await host.commit('acme', 'site', { 'README.md': 'second' });
    expect((await git(['fetch', '--quiet'], join(folder, 'site'))).code).toBe(0);
    expect((await git(['rev-parse', 'origin/main'], join(folder, 'site'))).text.trim()).toBe(later);
    for (const name of await readdir(join(folder, 'site/.git'), { recursive: true, withFileTypes: true })) {
      if (name.isFile()) expect((await readFile(join(name.parentPath, name.name))).includes(token)).toBe(false);
    }
    expect(lines.join()).not.toContain(token);
  });

  it('serves shallow and partial fetches, which need protocol version 2', async () => {
    await start();
    await host.commit('acme', 'site', { a: '1' });
    await host.commit('acme', 'site', { a: '2' });
    expect((await git(['clone', '--quiet', '--depth=1', siteUrl(), 'shallow'])).code).toBe(0);
    expect((await git(['rev-list', '--count', 'HEAD'], join(folder, 'shallow'))).text.trim()).toBe('1');
    expect(host.requests.some((request) => request.headers['git-protocol'] === 'version=2')).toBe(true);
  });

  it('accepts the run token also as the password of basic authentication', async () => {
    await start();
    await host.commit('acme', 'site', { a: '1' });
    const withUser = siteUrl().replace('http://', `http://x:${token}@`);
    expect((await git(['ls-remote', withUser], folder, null)).text).toContain('refs/heads/main');
  });

  it('forwards pushes, including packs of several megabytes', async () => {
    await start();
    await host.commit('acme', 'site', { a: '1' });
    await clone();
    const work = join(folder, 'site');
    await writeFile(join(work, 'large.bin'), randomBytes(5_000_000));
    await writeFile(join(work, 'a'), 'pushed');
    await git(['add', '--all'], work);
    await git(['commit', '--quiet', '--message', 'work'], work);
    expect(await git(['push', '--quiet', 'origin', 'HEAD:main'], work)).toMatchObject({ code: 0 });
    expect(await host.read('acme', 'site', 'a')).toBe('pushed');
  });

  it('refuses a push over the limit before all of it is forwarded', async () => {
    await start({}, { maxPushBytes: 1_000_000 });
    await host.commit('acme', 'site', { a: '1' });
    await clone();
    const work = join(folder, 'site');
    await writeFile(join(work, 'large.bin'), randomBytes(5_000_000));
    await git(['add', '--all'], work);
    await git(['commit', '--quiet', '--message', 'work'], work);
    const pushed = await git(['push', '--quiet', 'origin', 'HEAD:main'], work);
    expect(pushed.code).not.toBe(0);
    expect(pushed.text).toContain('the push is larger than 0 MB');
    await expect(host.read('acme', 'site', 'large.bin')).rejects.toThrow();
    expect((await git(['ls-remote', 'origin'], work)).code).toBe(0);
  });

  it("refuses repositories that are not in the run's environment, and git shows the reason", async () => {
    await start();
    await host.commit('acme', 'secret', { a: '1' });
    const { code, text } = await git(['clone', '--quiet', siteUrl().replace('site', 'secret'), 'secret']);
    expect(code).not.toBe(0);
    expect(text).toContain("acme/secret is not a repository of this run's environment");
    expect(host.requests).toHaveLength(0);
  });

  it.each([
    ['a wrong token', 'wrong'],
    ['no token', null],
  ])('refuses %s', async (_name, bearer) => {
    await start();
    await host.commit('acme', 'site', { a: '1' });
    const { code } = await git(['clone', '--quiet', siteUrl(), 'site'], folder, bearer);
    expect(code).not.toBe(0);
    const response = await fetch(`${siteUrl()}/info/refs?service=git-upload-pack`);
    expect(response.status).toBe(401);
    expect(response.headers.get('www-authenticate')).toMatch(/^Basic /);
    expect(host.requests).toHaveLength(0);
  });

  it("adds the team's credential, which the sandbox does not see", async () => {
    const password = 'ghs_credential-of-the-team';
    await start({ token: password }, { credentialFor: stored('x-access-token', password) });
    await host.commit('acme', 'site', { a: '1' });
    expect((await clone()).code).toBe(0);
    const sent = host.requests.map((request) => request.headers.authorization ?? '');
    expect(new Set(sent)).toEqual(new Set([`Basic ${Buffer.from(`x-access-token:${password}`).toString('base64')}`]));
    const response = await fetch(`${siteUrl()}/info/refs?service=git-upload-pack`, {
      headers: { authorization: `Bearer ${token}` },
    });
    expect(JSON.stringify([...response.headers]) + (await response.text()) + lines.join()).not.toContain(password);
  });

  it('reports a missing credential, and does not make git ask for one', async () => {
    await start({ token: 'wanted' });
    const { text } = await clone();
    expect(text).toContain('(RUNYARD_CODE_HOST_URL) asks for a credential for acme/site, and Runyard has none');
    expect(text).toContain('403');
  });

  it('reports that a repository does not exist', async () => {
    await start();
    expect((await clone()).text).toContain('(RUNYARD_CODE_HOST_URL) has no repository acme/site');
  });

  it('follows the redirect of a renamed repository on the same host, and requests the pack at the new URL', async () => {
    await start();
    await host.commit('acme', 'renamed', { a: 'here' });
    host.redirect('acme/site', 'acme/renamed');
    expect(await clone()).toEqual({ code: 0, text: '' });
    expect(await readFile(join(folder, 'site/a'), 'utf8')).toBe('here');
    expect(
      host.requests.filter((request) => request.method === 'POST').every((request) => request.url.includes('renamed')),
    ).toBe(true);
  });

  it.each(['http://127.0.0.1:1/acme/site.git', 'http://x:y@elsewhere.example/acme/site.git'])(
    'does not follow a redirect to another host: %s',
    async (to) => {
      const password = 'ghs_credential-of-the-team';
      await start({}, { credentialFor: stored('x', password) });
      host.redirect('acme/site', to);
      const { text } = await clone();
      expect(text).toContain('does not follow');
      expect(text).not.toContain(password);
    },
  );

  it('stops at a redirect loop', async () => {
    await start();
    host.redirect('acme/site', 'acme/site');
    expect((await clone()).text).toContain('does not follow');
    expect(host.requests.length).toBeLessThan(10);
  });

  it('reports that the code host is down, without its address', async () => {
    await start({}, { codeHostUrl: 'http://127.0.0.1:1/{owner}/{repo}.git' });
    const response = await fetch(`${siteUrl()}/info/refs?service=git-upload-pack`, {
      headers: { authorization: `Bearer ${token}` },
    });
    expect(response.status).toBe(502);
    expect(await response.text()).toBe('The code host could not be reached (ECONNREFUSED).\n');
  });

  it("refuses a run's request above the limit of concurrent requests, and accepts another request when one has ended", async () => {
    const api = (asked: IncomingMessage, response: ServerResponse) => {
      if (asked.method === 'POST') return false;
      response.writeHead(200).write('0000');
      return true;
    };
    await start({ api }, { maxInFlight: 2 });
    const send = () =>
      fetch(`${siteUrl()}/info/refs?service=git-upload-pack`, { headers: { authorization: `Bearer ${token}` } });
    const [first] = await Promise.all([send(), send()]);
    const refused = await send();
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '2']);
    expect(host.requests).toHaveLength(2);
    await first?.body?.cancel();
    await expect.poll(async () => (await send()).status).toBe(200);
  });

  it('frees the memory of a push if the client disconnects while the credential is looked up', async () => {
    const room = { total: 1, perTeam: 1, perExecution: 1 };
    const bodies = makeBodyBudget({ ...defaultBodyLimits, large: room });
    const entered = Promise.withResolvers<void>();
    const left = Promise.withResolvers<void>();
    let client: ClientRequest | undefined;
    await start(
      {},
      {
        bodies: { ...bodies, enter: (...asked) => bodies.enter(...asked).finally(entered.resolve) },
        credentialFor: async () => {
          client?.destroy();
          await left.promise;
          return { kind: 'none' };
        },
      },
    );
    app.server.once('connection', (socket) => socket.once('close', () => left.resolve()));
    const headers = { authorization: `Bearer ${token}`, 'content-length': 100 };
    client = request(`${siteUrl()}/git-receive-pack`, { method: 'POST', headers }).on('error', () => {});
    client.flushHeaders();
    await entered.promise;
    await expect.poll(() => bodies.tryEnter({ teamId: 'other' }, 1024 * 1024)).toBeDefined();
  });
});
