/** Tests pushes, with the real git, to branches from which factories take their definitions. */
import { describe, expect, it } from 'vitest';
import { openPushes } from '../../../../test/pushes.ts';
import { gatewayPathOf } from '../../../team/environments/git-path.ts';

const { host, service, clone, branchAt } = await openPushes();
/** An environment without protected branches. */
const open = { protected_branches: [] };

async function follow(source: object): Promise<void> {
  const factory = await service.request<{ uid: string }>('POST', '/factory', { body: { name: 'F' } });
  const path = `/factory/${factory.body.uid}/source`;
  await service.ok('PUT', path, { body: source });
}

for (const branch of ['live', 'moved', 'target']) await host.replace('acme', 'site', { branch, files: { a: branch } });
await host.alias('acme', 'site', 'followed-name', 'target');
await host.alias('acme', 'site', 'other-name', 'live');
host.redirect('acme/old', 'acme/site');
await follow({ repository: 'acme/site' });
await follow({ repository: 'ACME/Site.git', branch: 'live' });
await follow({ repository: 'acme/site', branch: 'followed-name' });
// The code host redirects `acme/old` to `acme/site`.
await follow({ repository: 'acme/old', branch: 'moved' });

describe('a push', () => {
  it.each([
    ['the default branch', 'main'],
    ['a branch of a repository that the source writes in another case', 'live'],
    ['a branch in another case', 'LIVE'],
    ['another name of a branch', 'other-name'],
    ['a branch that the source follows by another name', 'target'],
    ['a branch of a repository that the source names as before it was renamed', 'moved'],
  ])('to %s is refused, whatever the environment allows', async (_name, branch) => {
    const { git, commit } = await clone(open);
    const before = await branchAt(branch);
    await commit('taken over');
    const pushed = await git('push', '--force', 'origin', `HEAD:${branch}`);
    expect(pushed.text).toContain(`a factory takes its definition from ${branch}: push to another branch`);
    expect(await branchAt(branch)).toBe(before);
  });

  it('to a followed branch is also refused if the URL of the push contains the name that the repository had before a rename', async () => {
    const names = ['site', 'old', 'site.git'].map((repo) => ({ owner: 'acme', repo }));
    const { git, commit } = await clone({ ...open, github_repos: names });
    await commit('taken over');
    host.redirect('acme/site.git', 'acme/site');
    for (const repo of ['old', 'site.git']) {
      const url = service.baseUrl + gatewayPathOf({ owner: 'acme', repo });
      const pushed = await git('push', '--force', url, 'HEAD:main');
      expect(pushed.text).toContain('a factory takes its definition from main');
    }
  });

  it('to a branch that no factory follows is forwarded', async () => {
    const { git, commit } = await clone(open);
    const made = await commit('beside');
    expect((await git('push', '--quiet', 'origin', 'HEAD:live2')).code).toBe(0);
    expect(await branchAt('live2')).toBe(made);
  });
});
