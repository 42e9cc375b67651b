/** Pushes through the real service, with the real git: rules, record and audit log. */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { type IncomingMessage, request } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { gzipSync } from 'node:zlib';
import { afterAll, describe, expect, it } from 'vitest';
import { startFakeGitHost } from '../../../../../test/fakes/git-host.ts';
import { runGit } from '../../../test/run-git.ts';
import { openTestService } from '../../../test/service.ts';
import { gatewayPathOf } from '../../environments/git-path.ts';
import { giveUpUnanswered } from '../../repositories/pushes/unanswered.ts';

const host = await startFakeGitHost();
const folder = await mkdtemp(path.join(tmpdir(), 'pushes-'));
const service = await openTestService({ env: { RUNYARD_CODE_HOST_URL: host.template } });
afterAll(async () => {
  await host.close();
  await rm(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 200 });
});
const first = await host.commit('acme', 'site', { 'README.md': 'first' });

async function startRun(config: object = {}) {
  const environment = await service.request<{ uid: string }>('POST', '/agent/environments', {
    body: { config: { name: 'E', github_repos: [{ owner: 'acme', repo: 'site' }], ...config } },
  });
  expect(environment.status, environment.text).toBe(201);
  const runId = await service.newRun({ config: { environment_id: environment.body.uid } });
  return await service.claimRun(runId);
}

const siteUrl = service.baseUrl + gatewayPathOf({ owner: 'acme', repo: 'site' });

const emptyHead = Buffer.from('PACK\0\0\0\x02\0\0\0\0', 'latin1');
const emptyPack = Buffer.concat([emptyHead, createHash('sha1').update(emptyHead).digest()]);

const git = (runToken: string, cwd: string, ...args: string[]) => runGit({ runToken, home: folder, cwd }, args);

/** Starts a run and clones the repository as the run would. */
async function clone(config: object = {}) {
  const started = await startRun(config);
  const work = await mkdtemp(path.join(folder, 'work-'));
  const inWork = (...args: string[]) => git(started.runToken, work, ...args);
  expect(await inWork('clone', '--quiet', siteUrl, '.')).toEqual({ code: 0, text: '' });
  const commit = async (content: string, ...args: string[]) => {
    await writeFile(path.join(work, 'README.md'), content);
    expect((await inWork('commit', '--quiet', '--all', '--message', content, ...args)).code).toBe(0);
    return (await inWork('rev-parse', 'HEAD')).text.trim();
  };
  const events = async () => {
    const { body } = await service.request<{ events: { event_type: string; payload: unknown }[] }>(
      'GET',
      `/agent/runs/${started.runId}/timeline`,
    );
    return body.events.filter(({ event_type }) => event_type === 'git_push').map(({ payload }) => payload);
  };
  return { ...started, work, git: inWork, commit, events };
}

const branchAt = async (branch: string): Promise<string> =>
  (
    await git('none', folder, 'ls-remote', host.template.replace('{owner}/{repo}', 'acme/site'), `refs/heads/${branch}`)
  ).text.split('\t')[0] ?? '';

describe('a push', () => {
  it('to a branch of its own is forwarded, and is in the timeline and in the audit log', async () => {
    const { runId, git, commit, events } = await clone();
    const made = await commit('own');
    expect((await git('push', '--quiet', 'origin', 'HEAD:feature/own')).code).toBe(0);
    expect(await branchAt('feature/own')).toBe(made);
    expect(await events()).toEqual([
      { repository: 'acme/site', branches: [{ branch: 'feature/own', to: made, result: 'pushed' }] },
    ]);
    const audit = await service.request<{ entries: { action: string; subject: object; after: { run_id: string } }[] }>(
      'GET',
      '/audit-log?action=repository.push',
    );
    expect(audit.text).toContain(runId);
    expect(audit.text).toContain('feature/own');
  });

  it('to the default branch is refused, and git prints why', async () => {
    const { git, commit, events } = await clone();
    const made = await commit('main');
    const pushed = await git('push', 'origin', 'HEAD:main', 'HEAD:beside');
    expect(pushed.code).toBe(1);
    expect(pushed.text).toContain(
      '! [remote rejected] HEAD -> main (main is protected as the default branch: push to another branch and open a pull request)',
    );
    expect(pushed.text).toContain('HEAD -> beside (not pushed, because another ref of this push is refused)');
    expect(await branchAt('main')).toBe(first);
    expect(await branchAt('beside')).toBe('');
    expect(await events()).toMatchObject([
      {
        branches: [
          { branch: 'main', from: first, to: made, result: 'refused' },
          { branch: 'beside', result: 'refused' },
        ],
      },
    ]);
  });

  it('whose answer was lost is shown as unknown after a time, once, and its branch cannot be rewritten', async () => {
    const { runId, git, commit, events } = await clone();
    const made = await commit('lost');
    expect((await git('push', '--quiet', 'origin', 'HEAD:lost')).code).toBe(0);
    const { db } = service.deps;
    const lose = (hours: number) =>
      db.query(
        `UPDATE pushed_branches SET result = 'sent', created_at = now() - make_interval(hours => $2) WHERE run_id = $1`,
        [runId, hours],
      );
    const before = (await events()).length;
    await lose(1);
    await giveUpUnanswered(service.deps.executionDeps);
    expect(await events()).toHaveLength(before);
    await lose(3);
    await Promise.all([1, 2].map(() => giveUpUnanswered(service.deps.executionDeps)));
    expect((await events()).slice(before)).toEqual([
      { repository: 'acme/site', branches: [{ branch: 'lost', to: made, result: 'unknown' }] },
    ]);
    await commit('rewritten', '--amend');
    expect((await git('push', '--force', 'origin', 'HEAD:lost')).text).toContain('it may drop commits');
  });

  it('may rewrite branches of the run, but no other branch', async () => {
    const { git, commit } = await clone();
    await commit('one');
    expect((await git('push', '--quiet', 'origin', 'HEAD:mine')).code).toBe(0);
    const amended = await commit('two', '--amend');
    expect((await git('push', '--quiet', '--force', 'origin', 'HEAD:mine')).code).toBe(0);
    expect(await branchAt('mine')).toBe(amended);

    const other = await clone();
    await other.commit('theirs');
    const rewritten = await other.git('push', '--force', 'origin', 'HEAD:mine');
    expect(rewritten.text).toContain('it may drop commits that this run did not make');
    expect(await branchAt('mine')).toBe(amended);
  });

  it('adds commits to a branch of others', async () => {
    await host.replace('acme', 'site', { branch: 'theirs', files: { 'README.md': 'theirs' } });
    const { git, commit, events } = await clone();
    expect((await git('switch', '--quiet', 'theirs')).code).toBe(0);
    let tip = '';
    for (let index = 0; index < 12; index += 1) tip = await commit(`change ${index}`);
    expect((await git('push', 'origin', 'HEAD:theirs')).text).toContain('HEAD -> theirs');
    expect(await branchAt('theirs')).toBe(tip);
    expect(await events()).toMatchObject([{ branches: [{ result: 'pushed' }] }]);
    await commit('rewritten', '--amend');
    expect((await git('push', '--force', 'origin', 'HEAD:theirs')).text).toContain('it may drop commits');
    expect(await branchAt('theirs')).toBe(tip);
  });

  it.each([
    ['a tag', ['tag', 'v1'], ['push', 'origin', 'v1'], 'runs push branches only'],
    ['a deletion', ['tag', 'v2'], ['push', 'origin', '--delete', 'theirs'], 'runs delete no branches'],
    [
      'options for the code host',
      ['tag', 'v5'],
      ['push', '-o', 'merge_request.create', 'origin', 'HEAD:optional'],
      '-o',
    ],
    ['a ref of pull requests', ['tag', 'v3'], ['push', 'origin', 'HEAD:refs/pull/1/head'], 'runs push branches only'],
    [
      'more branches than a push can have',
      ['tag', 'v4'],
      ['push', 'origin', ...Array.from({ length: 21 }, (_, index) => `HEAD:refs/heads/many-${index}`)],
      'a push can update at most 20 branches',
    ],
  ])('of %s is refused', async (_name, before, command, reason) => {
    const { git } = await clone();
    await git(...before);
    expect(await git(...command)).toMatchObject({ code: 1, text: expect.stringContaining(reason) });
  });

  it('follows the protected branches of the environment', async () => {
    const patterns = await clone({ protected_branches: ['release/*'] });
    await patterns.commit('x');
    expect((await patterns.git('push', 'origin', 'HEAD:Release/1')).text).toContain('Release/1 is protected');
    const none = await clone({ protected_branches: ['*'] });
    await none.commit('y');
    expect((await none.git('push', 'origin', 'HEAD:z')).text).toContain('the environment allows no pushes');
    const invalid = await service.request('POST', '/agent/environments', {
      body: { config: { name: 'E', protected_branches: ['a b'] } },
    });
    expect(invalid.status).toBe(400);
    expect(invalid.text).toContain('config.protected_branches.0');
  });

  it.each([
    ['the default branch', {}, 'master'],
    ['a branch that a pattern protects', { protected_branches: ['ma*n'] }, 'trunk'],
  ])('to another name of %s is refused', async (_name, config, alias) => {
    await host.alias('acme', 'site', alias, 'main');
    const { git, commit } = await clone(config);
    await commit('alias');
    expect((await git('push', 'origin', `HEAD:${alias}`)).text).toContain(
      `${alias} is another name of main, which is protected`,
    );
    expect(await branchAt('main')).toBe(first);
    expect(await git('push', 'origin', `HEAD:${alias}2`)).toMatchObject({ code: 0 });
  });

  it('of a run that has ended is refused', async () => {
    const { runId, git, commit } = await clone();
    await commit('late');
    await service.request('POST', `/agent/runs/${runId}/cancel`);
    expect((await git('push', 'origin', 'HEAD:late')).code).not.toBe(0);
    expect(await branchAt('late')).toBe('');
  });

  it('whose last part comes after the end of its run changes nothing', async () => {
    const { runId, runToken, events } = await clone();
    const line = `${'0'.repeat(40)} ${first} refs/heads/too-late\0report-status`;
    const command = Buffer.from(`${(line.length + 4).toString(16).padStart(4, '0')}${line}0000`);
    const push = request(`${siteUrl}/git-receive-pack`, {
      method: 'POST',
      headers: { authorization: `Bearer ${runToken}`, 'content-type': 'application/x-git-receive-pack-request' },
    });
    const answered = once(push, 'response') as Promise<[IncomingMessage]>;
    push.write(Buffer.concat([command, emptyPack.subarray(0, 12)]));
    const count = () => service.deps.db.query('SELECT FROM pushed_branches WHERE run_id = $1', [runId]);
    await expect.poll(async () => (await count()).length).toBe(1);
    await service.request('POST', `/agent/runs/${runId}/cancel`);
    push.end(emptyPack.subarray(12));
    const [answer] = await answered;
    expect(await text(answer)).toContain('the run has ended or is stopping');
    expect(await events()).toMatchObject([{ branches: [{ branch: 'too-late', result: 'unknown' }] }]);
    expect(await branchAt('too-late')).toBe('');
  });

  it.each(['x\tpush-options', 'push-options=1'])(
    'whose options follow a capability that is written as %j is refused',
    async (capability) => {
      const { runToken } = await startRun();
      const line = (text: string) => `${(text.length + 4).toString(16).padStart(4, '0')}${text}`;
      const command = `${'0'.repeat(40)} ${first} refs/heads/hidden\0report-status ${capability}`;
      const body = Buffer.concat([
        Buffer.from(`${line(command)}0000${line('merge_request.auto_merge')}0000`),
        emptyPack,
      ]);
      const answer = await fetch(`${siteUrl}/git-receive-pack`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${runToken}`,
          'content-type': 'application/x-git-receive-pack-request',
        },
        body,
      });
      expect(await answer.text()).toContain('behind the list of refs there is no pack');
      expect(await branchAt('hidden')).toBe('');
    },
  );

  it('with a body in chunks or compressed is read like any other', async () => {
    const { git, commit } = await clone();
    await commit('chunks');
    const chunked = await git('-c', 'http.postBuffer=1', 'push', '--quiet', 'origin', 'HEAD:chunks');
    expect(chunked).toMatchObject({ code: 0 });
    const { runToken } = await startRun();
    const zeros = '0'.repeat(40);
    const line = `${first} ${zeros} refs/heads/main\0 report-status`;
    const body = `${(line.length + 4).toString(16).padStart(4, '0')}${line}0000`;
    const send = (bytes: Buffer, headers: Record<string, string>) =>
      fetch(`${siteUrl}/git-receive-pack`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${runToken}`,
          'content-type': 'application/x-git-receive-pack-request',
          ...headers,
        },
        body: bytes,
      });
    const compressed = await send(gzipSync(body), { 'content-encoding': 'gzip' });
    expect(await compressed.text()).toContain('ng refs/heads/main runs delete no branches');
    const unknown = await send(Buffer.from(body), { 'content-encoding': 'lzma' });
    expect(unknown.status).toBe(415);
    const signed = await send(Buffer.from('0011push-cert\0 a\n0000'), {});
    expect(signed.status).toBe(403);
    expect(await signed.text()).toContain('push with --no-signed');
    expect(await branchAt('main')).toBe(first);
  });
});
