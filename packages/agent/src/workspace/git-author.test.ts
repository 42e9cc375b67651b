import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { testFolder } from '../../test/agent.ts';
import { gitAuthorVariables, nameGitAuthor } from './git-author.ts';

test('the git author may have any characters, and an author in the settings of the repository or of the home has priority', () => {
  const folder = testFolder();
  const author = { name: 'Ada "the\u0007 first"\\ <Lövelace>\n[alias]', email: 'ada@example.com' };
  const env = { PATH: process.env.PATH, HOME: folder, ...nameGitAuthor(author, join(folder, 'agent.sock')) };
  const git = (...args: string[]) => execFileSync('git', args, { cwd: folder, env, encoding: 'utf8' });
  git('init', '--quiet');
  git('commit', '--quiet', '--allow-empty', '-m', 'one');
  expect(git('log', '--format=%an|%ae|%cn')).toBe(
    'Ada "the first"\\ Lövelace [alias]|ada@example.com|Ada "the first"\\ Lövelace [alias]\n',
  );
  git('config', 'user.name', 'Own');
  git('config', '--global', 'user.email', 'own@example.com');
  git('commit', '--quiet', '--allow-empty', '-m', 'two');
  expect(git('log', '-1', '--format=%an|%ae')).toBe('Own|own@example.com\n');
});

const ada = { name: 'Ada Lövelace', email: 'ada@example.com' };

/** Creates a folder with repositories of these names. Its git runs in a repository, with further variables. */
function repositories(...names: readonly string[]) {
  const folder = testFolder();
  const env = { PATH: process.env.PATH, HOME: folder, ...nameGitAuthor(ada, join(folder, 'agent.sock')) };
  const git = (name: string, args: readonly string[], more: Readonly<Record<string, string>> = {}) =>
    execFileSync('git', args, { cwd: join(folder, name), env: { ...env, ...more }, encoding: 'utf8' });
  for (const name of names) git('.', ['init', '--quiet', name]);
  const variables = () =>
    gitAuthorVariables([folder, ...names.map((name) => join(folder, name))], {
      env,
      signal: new AbortController().signal,
    });
  return { git, variables };
}

test('a program that hides all configuration files from git commits as the author of the run', async () => {
  const { git, variables } = repositories('a', 'b');
  const hidden = { GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_SYSTEM: '/dev/null', ...(await variables()) };
  git('a', ['commit', '--quiet', '--allow-empty', '-m', 'one'], hidden);
  expect(git('a', ['log', '--format=%an|%ae|%cn|%ce'])).toBe(
    'Ada Lövelace|ada@example.com|Ada Lövelace|ada@example.com\n',
  );
});

test('the variables of the author contain what the setup configured, and are absent if the setup configured one repository only', async () => {
  const { git, variables } = repositories('a', 'b');
  git('.', ['config', '--global', 'user.name', 'Of the home']);
  git('.', ['config', '--global', 'committer.email', 'bot@example.com']);
  expect(await variables()).toEqual({
    GIT_AUTHOR_NAME: 'Of the home',
    GIT_AUTHOR_EMAIL: 'ada@example.com',
    GIT_COMMITTER_NAME: 'Of the home',
    GIT_COMMITTER_EMAIL: 'bot@example.com',
  });
  git('b', ['config', 'user.name', 'Of the repository']);
  expect(await variables()).toEqual({});
});

test('there are no variables of the author if git knows no author', async () => {
  const folder = testFolder();
  const env = { PATH: process.env.PATH, HOME: folder, GIT_CONFIG_SYSTEM: '/dev/null' };
  expect(await gitAuthorVariables([folder], { env, signal: new AbortController().signal })).toEqual({});
});
