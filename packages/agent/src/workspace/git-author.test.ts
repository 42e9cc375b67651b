import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { testFolder } from '../../test/agent.ts';
import { nameGitAuthor } from './git-author.ts';

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
