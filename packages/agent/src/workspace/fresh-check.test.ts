import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { testFolder } from '../../test/agent.ts';
import { setupSteps } from '../reporting/setup-steps.ts';
import { applyToBase } from './fresh-check.ts';

const signal = new AbortController().signal;
const env = { ...process.env, GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_SYSTEM: '/dev/null' };
const git = (cwd: string, ...args: string[]) =>
  execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@example.org', ...args], { cwd, env, encoding: 'utf8' });

/** Makes a workspace with a clone of a repository that has the files. */
function workspaceWith(files: Readonly<Record<string, string>>) {
  const folder = testFolder();
  const origin = join(folder, 'origin');
  for (const name of ['origin/test', 'origin/src', 'home']) mkdirSync(join(folder, name), { recursive: true });
  git(origin, 'init', '--quiet');
  for (const [name, text] of Object.entries(files)) writeFileSync(join(origin, name), text);
  git(origin, 'add', '.');
  git(origin, 'commit', '--quiet', '--message', 'a');
  const workspace = join(folder, 'workspace');
  git(folder, 'clone', '--quiet', origin, join(workspace, 'site'));
  const commit = git(origin, 'rev-parse', 'HEAD').trim();
  const apply = async (patch: string) =>
    await applyToBase(
      { trusted_paths: ['test'], base_commits: [{ path: 'site', commit }] },
      [{ folder: 'site', path: 'p', size_bytes: patch.length }],
      {
        client: { download: async () => Buffer.from(patch) },
        workspace,
        env: { ...env, HOME: join(folder, 'home') },
        step: setupSteps(() => {}),
        signal,
      },
    );
  return { apply, clone: join(workspace, 'site') };
}

const files = { 'test/a.js': 'check()\n', 'src/a.js': 'work()\n' };

// The agent program stores changes without renames, but whoever has the token of a run can store any patch.
test.each<[string, string[]]>([
  ['moves a trusted file away', ['rename from test/a.js', 'rename to src/b.js']],
  [
    'moves a trusted file to a place in which the patch also names it',
    [
      'rename from test/a.js',
      'rename to src/b.js',
      'diff --git a/src/a.js b/test/a.js',
      'similarity index 100%',
      'rename from src/a.js',
      'rename to test/a.js',
    ],
  ],
])('a patch that %s fails the check', async (_, lines) => {
  const { apply } = workspaceWith(files);
  const patch = ['diff --git a/test/a.js b/src/b.js', 'similarity index 100%', ...lines, ''].join('\n');
  await expect(apply(patch)).rejects.toThrow(/test\/a\.js/);
});

test('a trusted file that a patch deletes stays as in the base commit, and its other changes are made', async () => {
  const { apply, clone } = workspaceWith(files);
  const removal = ['deleted file mode 100644', '--- a/test/a.js', '+++ /dev/null', '@@ -1 +0,0 @@', '-check()'];
  const change = [
    'diff --git a/src/a.js b/src/a.js',
    '--- a/src/a.js',
    '+++ b/src/a.js',
    '@@ -1 +1 @@',
    '-work()',
    '+play()',
  ];
  await apply(['diff --git a/test/a.js b/test/a.js', ...removal, ...change, ''].join('\n'));
  expect(existsSync(join(clone, 'test/a.js'))).toBe(true);
  expect(readFileSync(join(clone, 'src/a.js'), 'utf8')).toBe('play()\n');
});
