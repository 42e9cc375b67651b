/** Tests the rules, the record and the audit log of pushes through the real service with the real git. */
import { describe, expect, it } from 'vitest';
import { openPushes } from '../../../../test/pushes.ts';
import { giveUpUnanswered } from '../../../runs/repositories/pushes/unanswered.ts';

const { host, service, first, clone, branchAt } = await openPushes();
/** A clone that several tests share. The service refuses all pushes of these tests, so the repository stays unchanged. */
const refusedClone = clone();

describe('a push', () => {
  it('to its own branch is forwarded, and appears in the timeline and in the audit log', async () => {
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

  it("gets the result unknown some hours after the code host's answer was lost, and the run cannot rewrite the pushed branch", async () => {
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

  it('may add commits to a branch of others, but not rewrite it', async () => {
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
    const { git } = await refusedClone;
    await git(...before);
    expect(await git(...command)).toMatchObject({ code: 1, text: expect.stringContaining(reason) });
  });

  it('of 1,500 branches is refused, and git prints the reason', async () => {
    const { git } = await refusedClone;
    const names = Array.from({ length: 1_500 }, (_, index) => `HEAD:refs/heads/many-${index}`);
    expect(await git('push', 'origin', ...names)).toMatchObject({
      code: 1,
      text: expect.stringContaining('a push can update at most 20 branches'),
    });
  });

  it('of a branch with an ambiguous name such as HEAD is refused, because the branch would block pushes of others', async () => {
    const { git, commit } = await refusedClone;
    await commit('ambiguous');
    for (const name of ['refs/heads/main', 'HEAD'])
      expect((await git('push', 'origin', `HEAD:refs/heads/${name}`)).text).toContain('choose');
    expect(await branchAt('refs/heads/main')).toBe('');
  });

  it('to a protected branch of the environment is refused', async () => {
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

  it('to the ref of a repository is refused if the environment lists no protected branches, now or when the run was created', async () => {
    const refs = (...all: string[]) => ({
      github_repos: all.map((ref, at) => ({ owner: 'acme', repo: 'site', ref, path: `at-${at}` })),
    });
    const { git, commit, ...run } = await clone(refs('live', first));
    await commit('ref');
    expect((await git('push', 'origin', 'HEAD:live')).text).toContain('live is protected');
    expect((await git('push', 'origin', 'HEAD:main')).text).toContain('main is protected as the default branch');
    expect((await git('push', 'origin', 'HEAD:later')).code).toBe(0);
    const item = await service.request<{ agent_config: { environment_id: string } }>('GET', `/agent/runs/${run.runId}`);
    const change = async (config: object) => {
      const path = `/agent/environments/${item.body.agent_config.environment_id}`;
      await service.ok('PUT', path, { body: { config: { name: 'E', ...config } } });
    };
    await commit('again');
    await change(refs('later'));
    expect((await git('push', 'origin', 'HEAD:later')).text).toContain('later is protected');
    await change({ ...refs('later'), protected_branches: [] });
    expect((await git('push', 'origin', 'HEAD:later')).code).toBe(0);
    expect((await git('push', 'origin', 'HEAD:live')).text).toContain('live is protected');

    const open = await clone({ ...refs('live'), protected_branches: [] });
    await open.commit('open');
    expect((await open.git('push', 'origin', 'HEAD:live')).code).toBe(0);
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
});
