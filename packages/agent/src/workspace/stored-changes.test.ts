import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { testFolder } from '../../test/agent.ts';
import { repositoryPatch } from '../handoff/patch.ts';
import { setupSteps } from '../reporting/setup-steps.ts';
import { applyPatches } from './stored-changes.ts';

const signal = new AbortController().signal;
const env = { ...process.env, GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_SYSTEM: '/dev/null' };
const git = (cwd: string, ...args: string[]) =>
  execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@example.org', ...args], { cwd, env, stdio: 'pipe' });

/** Makes a repository with one commit, and clones of it. */
function clonesOf(names: readonly string[]): readonly string[] {
  const folder = testFolder();
  const origin = join(folder, 'origin');
  mkdirSync(origin);
  git(origin, 'init', '--quiet');
  writeFileSync(join(origin, 'a'), 'one\n');
  git(origin, 'add', '.');
  git(origin, 'commit', '--quiet', '--message', 'a');
  return names.map((name) => {
    git(folder, 'clone', '--quiet', origin, join(name, 'site'));
    return join(folder, name);
  });
}

async function apply(workspace: string, patch: Buffer): Promise<string | undefined> {
  const home = join(workspace, '../home');
  mkdirSync(home, { recursive: true });
  return await applyPatches([{ folder: 'site', path: 'p', size_bytes: patch.length }], {
    client: { download: async () => patch },
    workspace,
    env: { ...env, HOME: home },
    step: setupSteps(() => {}),
    signal,
  });
}

test('stored changes bring the files of the earlier clone, but none of its hooks, settings and ignored files', async () => {
  const [earlier = '', fresh = ''] = clonesOf(['earlier', 'fresh']);
  const site = join(earlier, 'site');
  writeFileSync(join(site, 'a'), 'two\n');
  writeFileSync(join(site, 'b'), 'new\n');
  writeFileSync(join(site, '.git/info/exclude'), 'ignored\n');
  writeFileSync(join(site, 'ignored'), 'x');
  writeFileSync(join(site, '.git/hooks/post-checkout'), '#!/bin/sh\ntouch hooked\n', { mode: 0o755 });
  git(site, 'config', 'core.fsmonitor', 'touch monitored');
  const scratch = testFolder();
  const patch = await repositoryPatch(site, { scratch, path: process.env.PATH, maxBytes: 1e6, signal });

  const config = readFileSync(join(fresh, 'site/.git/config'), 'utf8');
  expect(await apply(fresh, readFileSync(patch ?? ''))).toBeUndefined();
  expect(readFileSync(join(fresh, 'site/a'), 'utf8')).toBe('two\n');
  expect(readFileSync(join(fresh, 'site/b'), 'utf8')).toBe('new\n');
  expect(readFileSync(join(fresh, 'site/.git/config'), 'utf8')).toBe(config);
  for (const name of ['ignored', '.git/hooks/post-checkout', 'hooked', 'monitored'])
    expect(existsSync(join(fresh, 'site', name)), name).toBe(false);
});

test.each(['.git/hooks/pre-push', '../outside', 'link/outside'])('a patch cannot write %s', async (name) => {
  const [fresh = ''] = clonesOf(['fresh']);
  const link =
    'diff --git a/link b/link\nnew file mode 120000\n--- /dev/null\n+++ b/link\n@@ -0,0 +1 @@\n+/tmp\n\\ No newline at end of file\n';
  const file = `diff --git a/${name} b/${name}\nnew file mode 100755\n--- /dev/null\n+++ b/${name}\n@@ -0,0 +1 @@\n+x\n`;
  expect(await apply(fresh, Buffer.from(name.startsWith('link') ? link + file : file))).toContain('were not applied');
  for (const written of ['site/.git/hooks/pre-push', 'outside', 'site/link'])
    expect(existsSync(join(fresh, written)), written).toBe(false);
});

test('a patch that does not fit changes no file, and the reason is returned', async () => {
  const [fresh = ''] = clonesOf(['fresh']);
  const patch = 'diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-other\n+two\n';
  expect(await apply(fresh, Buffer.from(patch))).toMatch(/changes of site were not applied: .*patch/s);
  expect(readFileSync(join(fresh, 'site/a'), 'utf8')).toBe('one\n');
});
