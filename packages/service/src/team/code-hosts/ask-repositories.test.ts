import { expect, test } from 'vitest';
import { startFakeGitHost } from '../../../../../test/fakes/git-host.ts';
import { closeAtEnd } from '../../../../../test/support/close-at-end.ts';
import { askRepositories } from './ask-repositories.ts';
import { codeHostUrl } from './url.ts';

const host = closeAtEnd(await startFakeGitHost());
const site = { owner: 'acme', repo: 'site' };
const onMain = await host.commit('acme', 'site', { a: '1' });
const onBranch = await host.replace('acme', 'site', { branch: 'release/1', files: { a: '2' } });
await host.replace('acme', 'site', { branch: 'release/10', files: { a: '3' } });

const headOf = async (ref?: string) => {
  const access = {
    urlOf: () => codeHostUrl(host.template, site),
    credentialFor: async () => ({ kind: 'none' }) as const,
  };
  const [answer] = await askRepositories([{ ...site, ref }], access);
  return answer?.kind === 'readable' ? answer.head : answer?.kind;
};

test('the head of a repository is the commit of its default branch, of a branch with the given name, or the given commit', async () => {
  expect(await headOf()).toEqual({ commit: onMain, branch: 'main' });
  expect(await headOf('release/1')).toEqual({ commit: onBranch, branch: 'release/1' });
  expect(await headOf(onMain)).toEqual({ commit: onMain, branch: onMain });
});

test('a repository without the given ref has no head', async () => {
  expect(await headOf('release')).toBeNull();
});
