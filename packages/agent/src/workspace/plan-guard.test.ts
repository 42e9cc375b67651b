import { execFileSync } from 'node:child_process';
import { chmodSync, lstatSync, mkdirSync, mkdtempSync, renameSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { newFolder } from '../../../../test/support/close-at-end.ts';
import { planGuard } from './plan-guard.ts';

const top = newFolder();
let workspace: string;
const at = (name: string) => join(workspace, name);
const git = (...args: string[]) =>
  execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@example.invalid', ...args], {
    cwd: at('site'),
    stdio: 'pipe',
  });

beforeEach(() => {
  workspace = mkdtempSync(join(top, 'w-'));
  for (const folder of ['site', 'attachments', 'home']) mkdirSync(at(folder));
  writeFileSync(at('site/old'), 'old');
  git('init', '--quiet', '-b', 'main');
  git('add', '.');
  git('commit', '--quiet', '-m', 'first');
});

async function changeAfter(act: () => void): Promise<string | undefined> {
  const guard = planGuard(workspace, at('home'));
  await guard.begin();
  // The clock of change times advances in steps of a few milliseconds.
  const timeOf = () => lstatSync(mkdtempSync(join(top, 't-')), { bigint: true }).ctimeNs;
  const before = timeOf();
  await expect.poll(() => timeOf() > before).toBe(true);
  act();
  return await guard.findChange();
}

test.each<[name: string, act: () => void, path: string]>([
  ['a new file', () => writeFileSync(at('site/new'), ''), 'site/new'],
  [
    'a changed file with its old times',
    () => {
      writeFileSync(at('site/old'), 'new');
      utimesSync(at('site/old'), 1, 1);
    },
    'site/old',
  ],
  ['a removed file', () => rmSync(at('site/old')), 'site'],
  ['a renamed file', () => renameSync(at('site/old'), at('site/renamed')), 'site'],
  ['a changed mode', () => chmodSync(at('site/old'), 0o700), 'site/old'],
  ['a new file at the top', () => writeFileSync(at('top'), ''), 'top'],
  ['a commit', () => void git('commit', '--quiet', '--allow-empty', '-m', 'second'), 'site/.git/refs/heads'],
  ['a branch', () => void git('branch', 'other'), 'site/.git/refs/heads'],
  ['a hook', () => writeFileSync(at('site/.git/hooks/pre-commit'), ''), 'site/.git/hooks'],
  ['a setting of the repository', () => void git('config', 'core.pager', 'x'), 'site/.git/config'],
])('finds %s', async (_name, act, path) => {
  expect(await changeAfter(act)).toMatch(new RegExp(`^${path}`));
});

test.each<[name: string, act: () => void]>([
  ['nothing', () => {}],
  ['git commands that only read', () => void [git('status'), git('log'), git('diff', 'HEAD')]],
  ['files of an answer, and the home of the run', () => writeFileSync(at('attachments/a'), '')],
  ['files outside of the workspace', () => writeFileSync(at('home/b'), '')],
])('finds no change after %s', async (_name, act) => {
  expect(await changeAfter(act)).toBeUndefined();
});
