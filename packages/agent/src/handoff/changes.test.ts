import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, renameSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { maxChangedFiles, maxFilePatchBytes } from '@runyard/contract/limits';
import { ReportChanges } from '@runyard/contract/runs/changes';
import { expect, test } from 'vitest';
import { testFolder } from '../../test/agent.ts';
import { readChanges } from './changes.ts';
import { changesReporter } from './changes-reporter.ts';

const identity = ['-c', 'user.name=T', '-c', 'user.email=t@example.com', '-c', 'init.defaultBranch=main'];
const git = (cwd: string, ...args: string[]) =>
  execFileSync('git', [...identity, ...args], { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });

/** Makes a workspace with a clone of a repository. */
function cloned(files: Readonly<Record<string, string | Buffer>>) {
  const top = testFolder();
  const origin = join(top, 'origin');
  mkdirSync(origin);
  git(origin, 'init', '--quiet');
  for (const [name, text] of Object.entries(files)) writeFileSync(join(origin, name), text);
  git(origin, 'add', '.');
  git(origin, 'commit', '--quiet', '-m', 'first');
  const workspace = join(top, 'workspace');
  mkdirSync(workspace);
  const clone = join(workspace, 'repo');
  git(top, 'clone', '--quiet', `file://${origin}`, clone);
  git(clone, 'update-ref', 'refs/runyard/base', 'HEAD');
  return { workspace, clone, base: git(clone, 'rev-parse', 'HEAD').trim() };
}

const read = async (workspace: string) => {
  const signal = AbortSignal.timeout(60_000);
  const changes = await readChanges({ workspace, env: { HOME: testFolder(), PATH: process.env.PATH }, signal });
  return ReportChanges.parse(changes).repositories;
};

const lines = (count: number, text: string) => Array.from({ length: count }, (_, n) => `${text} ${n}\n`).join('');

test('the report has the commits and the staged, unstaged and untracked changes of each repository, with their hunks', async () => {
  const { workspace, clone, base } = cloned({
    'kept.txt': 'one\ntwo\n',
    'gone.txt': 'gone\n',
    'old.txt': lines(20, 'line'),
    'link.txt': 'text\n',
    'mode.sh': 'run\n',
    'same.txt': 'same\n',
  });
  git(clone, 'switch', '--quiet', '--create', 'fix');
  writeFileSync(join(clone, 'kept.txt'), 'one\n2\n');
  git(clone, 'commit', '--quiet', '--all', '-m', 'second');
  renameSync(join(clone, 'old.txt'), join(clone, 'new.txt'));
  unlinkSync(join(clone, 'gone.txt'));
  unlinkSync(join(clone, 'link.txt'));
  symlinkSync('kept.txt', join(clone, 'link.txt'));
  chmodSync(join(clone, 'mode.sh'), 0o755);
  writeFileSync(join(clone, 'image.bin'), Buffer.from([0, 1, 2, 255]));
  mkdirSync(join(workspace, 'made'));
  git(join(workspace, 'made'), 'init', '--quiet');
  writeFileSync(join(workspace, 'made', 'a'), 'no newline');
  const [made, repo] = await read(workspace);
  expect(made).toEqual({
    path: 'made',
    branch: 'main',
    files: [
      {
        path: 'a',
        status: 'added',
        additions: 1,
        deletions: 0,
        patch: '@@ -0,0 +1 @@\n+no newline\n\\ No newline at end of file\n',
      },
    ],
  });
  expect(repo).toMatchObject({ path: 'repo', branch: 'fix', base_commit: base });
  expect(repo?.files.map(({ patch: _, ...file }) => file)).toEqual([
    { path: 'gone.txt', status: 'deleted', additions: 0, deletions: 1 },
    { path: 'image.bin', status: 'added', binary: true },
    { path: 'kept.txt', status: 'modified', additions: 1, deletions: 1 },
    { path: 'link.txt', status: 'type_changed', additions: 1, deletions: 1 },
    { path: 'mode.sh', status: 'modified', additions: 0, deletions: 0 },
    { path: 'new.txt', old_path: 'old.txt', status: 'renamed', additions: 0, deletions: 0 },
  ]);
  expect(repo?.files[2]?.patch).toBe('@@ -1,2 +1,2 @@\n one\n-two\n+2\n');
});

test('hostile file names and contents that look like headers do not change paths or patches of other files', async () => {
  const { workspace, clone } = cloned({ 'a.txt': 'a\n' });
  const names = ['with space', 'tab\tnewline\nquote"\\', 'bidi\u202e.txt', '-rf', 'b -> c', 'a.txt b', '<img src=x>'];
  for (const name of names) writeFileSync(join(clone, name), `of ${name.length}\n`);
  writeFileSync(Buffer.from(`${clone}/latin\xe9`, 'latin1'), 'of latin\n');
  writeFileSync(join(clone, 'a.txt'), 'diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n');
  const [repo] = await read(workspace);
  const patches = new Map(repo?.files.map(({ path, patch }) => [path, patch]));
  expect([...patches.keys()].toSorted()).toEqual([...names, 'latin\ufffd', 'a.txt'].toSorted());
  for (const name of names) expect(patches.get(name)).toBe(`@@ -0,0 +1 @@\n+of ${name.length}\n`);
  expect(patches.get('a.txt')).toBe('@@ -1 +1,4 @@\n-a\n+diff --git a/x b/x\n+--- a/x\n++++ b/x\n+@@ -1 +1 @@\n');
});

test('the report has limits for the size of each file, the total size and the number of files, and omits large files', async () => {
  const { workspace, clone } = cloned({ 'a.txt': 'a\n' });
  writeFileSync(join(clone, '00-long-line'), 'x'.repeat(200_000));
  writeFileSync(join(clone, '01-huge'), 'y\n'.repeat(700_000));
  writeFileSync(join(clone, '02-many-lines'), lines(20_000, 'a line'));
  for (let n = 0; n < 20; n += 1) writeFileSync(join(clone, `1${n}`), lines(7_000, 'some text'));
  for (let n = 0; n < maxChangedFiles; n += 1) writeFileSync(join(clone, `2-${String(n).padStart(4, '0')}`), `${n}\n`);
  const [repo] = await read(workspace);
  expect(repo?.files).toHaveLength(maxChangedFiles);
  expect(repo?.files_left_out).toBe(23);
  const file = (path: string) => repo?.files.find((each) => each.path === path);
  expect(file('00-long-line')).toEqual({
    path: '00-long-line',
    status: 'added',
    additions: 1,
    deletions: 0,
    too_large: true,
  });
  expect(file('01-huge')).toEqual({ path: '01-huge', status: 'added', too_large: true });
  expect(file('02-many-lines')).toMatchObject({ additions: 20_000, too_large: true });
  expect(file('10')?.patch?.length).toBeLessThan(maxFilePatchBytes);
  const together = repo?.files.reduce((sum, { patch = '' }) => sum + patch.length, 0) ?? 0;
  expect(together).toBeGreaterThan(1_000_000);
  expect(together).toBeLessThanOrEqual(2 * 1024 * 1024);
  expect(file('19')).toMatchObject({ too_large: true });
});

test('the reporter pauses between two reports, and a report that was requested during the pause has the newest changes', async () => {
  const { workspace, clone } = cloned({ 'a.txt': 'a\n' });
  const sent: { at: number; files: number }[] = [];
  const end = new AbortController();
  const reporter = changesReporter({
    client: {
      ask: async <T>(_: string, __: string, { body }: { body?: object } = {}) => {
        const files = (body as ReportChanges).repositories[0]?.files.length ?? -1;
        sent.push({ at: performance.now(), files });
        return {} as T;
      },
    },
    workspace,
    ownFolders: true,
    env: { HOME: testFolder(), PATH: process.env.PATH },
    sendFiles: async () => {
      throw new Error('the workspace has a repository');
    },
    signal: end.signal,
    restMs: 300,
  });
  reporter.ask();
  reporter.ask();
  await expect.poll(() => sent.length).toBe(1);
  writeFileSync(join(clone, 'b.txt'), 'b\n');
  for (let n = 0; n < 5; n += 1) reporter.ask();
  await expect.poll(() => sent.length).toBe(2);
  expect((sent[1]?.at ?? 0) - (sent[0]?.at ?? 0)).toBeGreaterThan(290);
  expect(sent.map(({ files }) => files)).toEqual([0, 1]);
  end.abort();
  await expect(reporter.report(end.signal)).rejects.toThrow();
});
