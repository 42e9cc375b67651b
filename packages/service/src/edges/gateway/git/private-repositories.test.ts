/**
 * Clones and pushes private repositories through the real service, with stored credentials, the real git and a code host that requires
 * credentials.
 */
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { type FakeGitHost, type FakeGitHostOptions, startFakeGitHost } from '../../../../../../test/fakes/git-host.ts';
import { makeFakeGitHubApp } from '../../../../../../test/fakes/github-app.ts';
import { runGit } from '../../../../test/run-git.ts';
import { startTestService, type TestService } from '../../../../test/service.ts';
import { gatewayPathOf } from '../../../team/environments/git-path.ts';

let service: TestService;
let host: FakeGitHost;
let folder: string;

afterEach(async () => {
  await service.close();
  await host.close();
  await rm(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 200 });
});

async function start(options: FakeGitHostOptions): Promise<void> {
  host = await startFakeGitHost(options);
  folder = await mkdtemp(path.join(tmpdir(), 'private-repositories-'));
  service = await startTestService({ env: { RUNYARD_CODE_HOST_URL: host.template } });
}

const store = async (body: object, key = service.key) =>
  (await service.ok<{ id: string }>('POST', '/code-hosts', { key, body })).id;

/**
 * Starts a run in an environment with these repositories and returns the run token. `author` is the key that creates the environment, and
 * `key` is the key that starts the run.
 */
async function startRun(repositories: readonly string[], key = service.key, author = key) {
  const github_repos = repositories.map((name) => ({ owner: name.split('/')[0], repo: name.split('/')[1] }));
  const environment = await service.request<{ uid: string }>('POST', '/agent/environments', {
    key: author,
    body: { config: { name: 'E', github_repos } },
  });
  const config = { environment_id: environment.body.uid };
  const runId = await service.newRun({ config }, key);
  return { ...(await service.claimRun(runId)), environmentUid: environment.body.uid };
}

const git = (runToken: string, ...args: string[]) => runGit({ runToken, home: folder }, args);

const urlOf = (name: string) => {
  const [owner = '', repo = ''] = name.split('/');
  return service.baseUrl + gatewayPathOf({ owner, repo });
};
const clone = (runToken: string, name: string, into = 'clone') =>
  git(runToken, 'clone', '--quiet', urlOf(name), path.join(folder, into));
const sent = () => [
  ...new Set(
    host.requests.map(({ headers }) => Buffer.from((headers.authorization ?? '').slice(6), 'base64').toString()),
  ),
];

describe('the credential of a repository', () => {
  test('lets git clone and push a private repository, and does not appear in the clone', async () => {
    const token = 'glpat-of-the-team-0123456789';
    await start({ token });
    await host.commit('acme', 'site', { 'README.md': 'private' });
    const { runToken } = await startRun(['acme/site']);
    expect((await clone(runToken, 'acme/site')).text).toContain('store one with bin/runyard code-hosts add');
    await store({ scope: 'team', kind: 'token', token, username: 'oauth2' });
    expect(await clone(runToken, 'acme/site')).toEqual({ code: 0, text: '' });
    await writeFile(path.join(folder, 'clone/README.md'), 'pushed');
    expect((await git(runToken, '-C', 'clone', 'commit', '--quiet', '--all', '--message', 'w')).code).toBe(0);
    expect((await git(runToken, '-C', 'clone', 'push', '--quiet', 'origin', 'HEAD:change')).code).toBe(0);
    expect(await host.read('acme', 'site', 'README.md', 'change')).toBe('pushed');
    expect(sent()).toEqual(['', `oauth2:${token}`]);
    for (const file of await readdir(path.join(folder, 'clone/.git'), { recursive: true, withFileTypes: true }))
      if (file.isFile())
        expect((await readFile(path.join(file.parentPath, file.name))).includes(token), file.name).toBe(false);
    expect(service.logged.join()).not.toContain(token);
  });

  test("that is personal has priority over the team's credential, but only in environments that the owner of the personal credential wrote", async () => {
    await start({ accepts: () => true });
    await host.commit('acme', 'site', { a: '1' });
    const [one, other] = [await service.newKey({ role: 'member' }), await service.newKey({ role: 'member' })];
    const agent = await service.newKey({ kind: 'agent' });
    await store({ kind: 'token', token: 'of-one' }, one);
    await store({ scope: 'team', kind: 'token', token: 'of-team', owner: 'acme' });
    for (const [key, token, author] of [
      [one, 'of-one', one],
      [one, 'of-team', other],
      [other, 'of-team', other],
      [agent, 'of-team', agent],
    ] as const) {
      const before = host.requests.length;
      const { runToken } = await startRun(['acme/site'], key, author);
      expect((await git(runToken, 'ls-remote', urlOf('acme/site'))).code).toBe(0);
      const used = host.requests.slice(before).map(({ headers }) => headers.authorization);
      expect(new Set(used)).toEqual(new Set([`Basic ${Buffer.from(`x-access-token:${token}`).toString('base64')}`]));
    }
  });

  test('that is for one owner has priority over the credential for every owner, and a credential of another team is never used', async () => {
    await start({ accepts: () => true });
    await host.commit('acme', 'site', { a: '1' });
    await host.commit('other', 'site', { a: '1' });
    const { runToken } = await startRun(['ACME/site', 'other/site']);
    await store({ scope: 'team', kind: 'token', token: 'of-strangers' }, service.otherKey);
    await git(runToken, 'ls-remote', urlOf('other/site'));
    expect(sent()).toEqual(['']);
    await store({ scope: 'team', kind: 'token', token: 'for-all' });
    const id = await store({ scope: 'team', kind: 'token', token: 'for-acme', owner: 'Acme' });
    await git(runToken, 'ls-remote', urlOf('ACME/site'));
    await git(runToken, 'ls-remote', urlOf('other/site'));
    expect(sent()).toEqual(['', 'x-access-token:for-acme', 'x-access-token:for-all']);
    await service.request('DELETE', `/code-hosts/${id}`);
    const before = host.requests.length;
    await git(runToken, 'ls-remote', urlOf('ACME/site'));
    expect(host.requests[before]?.headers.authorization).toBe(host.requests[before - 1]?.headers.authorization);
  });

  test('is not sent if it was encrypted with another secrets key, and git shows the remedy', async () => {
    await start({ accepts: () => true });
    await host.commit('acme', 'site', { a: '1' });
    await store({ scope: 'team', kind: 'token', token: 'sealed' });
    await service.deps.db.query("UPDATE code_host_credentials SET vault_key_id = 'another'");
    const { runToken } = await startRun(['acme/site']);
    expect((await clone(runToken, 'acme/site')).text).toContain('sealed with another secrets key');
    expect(host.requests).toEqual([]);
  });
});

describe('a GitHub App', () => {
  const storeApp = (app: { appId: string; privateKey: string }, more: object = {}) =>
    store({ scope: 'team', kind: 'github_app', app_id: app.appId, private_key: app.privateKey, ...more });

  test("gives clones a token of the app's installation, which the service requests only once until the token is revoked", async () => {
    const app = makeFakeGitHubApp('acme');
    await start(app.options);
    await host.commit('acme', 'site', { a: '1' });
    await storeApp(app);
    const { runToken } = await startRun(['acme/site']);
    const clones = [1, 2, 3].map((n) => clone(runToken, 'acme/site', `clone-${n}`));
    for (const { code, text } of await Promise.all(clones)) expect(code, text).toBe(0);
    expect(app.tokens).toHaveLength(1);
    app.revoke();
    expect((await git(runToken, 'ls-remote', urlOf('acme/site'))).text).toContain('refused the stored credential');
    expect((await git(runToken, 'ls-remote', urlOf('acme/site'))).code).toBe(0);
    expect(app.tokens).toHaveLength(2);
    expect(service.logged.join()).not.toContain('ghs_fake');
  });

  test('gives a new token shortly before the previous token expires', async () => {
    const app = makeFakeGitHubApp('acme', 4 * 60_000);
    await start(app.options);
    await host.commit('acme', 'site', { a: '1' });
    await storeApp(app, { installation_id: '4711' });
    const { runToken } = await startRun(['acme/site']);
    await git(runToken, 'ls-remote', urlOf('acme/site'));
    await git(runToken, 'ls-remote', urlOf('acme/site'));
    expect(app.tokens.length).toBeGreaterThan(1);
  });

  test('gives no access if the app is not installed for the repository or its stored private key is wrong, and git shows the reason', async () => {
    const app = makeFakeGitHubApp('acme');
    await start(app.options);
    await storeApp(app);
    const { runToken } = await startRun(['elsewhere/site', 'acme/site']);
    expect((await clone(runToken, 'elsewhere/site')).text).toContain('is not installed for elsewhere/site');
    await storeApp({ ...app, privateKey: makeFakeGitHubApp('acme').privateKey }, { owner: 'acme' });
    expect((await clone(runToken, 'acme/site')).text).toContain('its app_id or private_key is wrong');
  });
});

describe('a run with repositories that cannot be read', () => {
  const resolve = (key: string) => service.request('POST', '/harness-support/resolve-prompt', { key, body: {} });

  test('fails before the sandbox clones if the code host refuses access; the error has the provider, the auth_url and the repositories', async () => {
    await start({ accepts: (name) => name === 'acme/open' });
    await host.commit('acme', 'open', { a: '1' });
    const { runId, runToken, environmentUid } = await startRun(['acme/open', 'acme/closed', 'acme/hidden']);
    expect((await resolve(runToken)).status).toBe(401);
    const body = await service.ok<{ status_message: object }>('GET', `/agent/runs/${runId}`);
    expect(body).toMatchObject({
      state: 'FAILED',
      status_message: {
        error_code: 'external_authentication_required',
        retryable: false,
        provider: new URL(host.url).host,
        auth_url: `${service.baseUrl}/errors/external-authentication-required`,
        inaccessible_repos: ['acme/closed', 'acme/hidden'],
        message: expect.stringContaining('bin/runyard code-hosts add'),
      },
    });
    const page = await service.request('GET', `${service.baseUrl}/errors/external-authentication-required`);
    expect(page.text).toContain('code-hosts add');
    const timeline = await service.request('GET', `/agent/runs/${runId}/timeline`);
    expect(timeline.text).toContain('"inaccessible_repos":["acme/closed","acme/hidden"]');
    const environment = await service.request('GET', `/agent/environments/${environmentUid}`);
    expect(environment.body).toMatchObject({ setup_failed: true, last_task_created: { id: runId, state: 'FAILED' } });
  });

  test('still gets its task if the code host redirects the check of the repositories, fails, or does not answer in time', async () => {
    await start({
      api: (request, response) => {
        if (request.url?.includes('/slow')) return true;
        if (!request.url?.includes('/broken')) return false;
        response.writeHead(500).end();
        return true;
      },
    });
    await host.commit('acme', 'new', { a: '1' });
    host.redirect('acme/old', 'acme/new');
    const { runToken } = await startRun(['acme/old', 'acme/broken', 'acme/slow']);
    expect((await resolve(runToken)).status).toBe(200);
  });
});
