import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  symlinkSync,
  truncateSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { testFolder } from '../../test/agent.ts';
import { OutputTooLarge } from './git.ts';
import { baseRef, clonedAt, gitRepositories } from './git-repositories.ts';
import { repositoryPatch } from './patch.ts';

const identity = ['-c', 'user.name=T', '-c', 'user.email=t@example.com', '-c', 'init.defaultBranch=main'];
const git = (cwd: string, ...args: string[]) =>
  execFileSync('git', [...identity, ...args], { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });

/** Makes a repository, and clones it into a workspace in the same way as the agent does. */
function cloned() {
  const top = testFolder();
  const origin = join(top, 'origin');
  mkdirSync(origin);
  git(origin, 'init', '--quiet');
  writeFileSync(join(origin, 'kept.txt'), 'one\ntwo\n');
  writeFileSync(join(origin, 'gone.txt'), 'gone\n');
  writeFileSync(join(origin, 'image.bin'), Buffer.from([0, 1, 2, 255, 254]));
  writeFileSync(join(origin, '.gitignore'), 'ignored/\n');
  git(origin, 'add', '.');
  git(origin, 'commit', '--quiet', '-m', 'first');
  const workspace = join(top, 'workspace');
  mkdirSync(workspace);
  const clone = join(workspace, 'repo');
  git(top, 'clone', '--quiet', `file://${origin}`, clone);
  git(clone, 'update-ref', baseRef, 'HEAD');
  return { top, origin, workspace, clone };
}

const patchOf = (repository: string, maxBytes = 1e8) =>
  repositoryPatch(repository, {
    scratch: testFolder(),
    path: process.env.PATH,
    maxBytes,
    signal: AbortSignal.timeout(60_000),
  });

/** Applies the patch to a fresh clone and returns the id of its tree. */
function treeWith(patch: string, { top, origin }: { top: string; origin: string }): string {
  const fresh = join(top, 'fresh');
  git(top, 'clone', '--quiet', `file://${origin}`, fresh);
  git(fresh, 'apply', '--index', patch);
  return git(fresh, 'write-tree').trim();
}
const treeOf = (repository: string) => {
  git(repository, 'add', '--all');
  return git(repository, 'write-tree').trim();
};

function changeALot(clone: string) {
  writeFileSync(join(clone, 'kept.txt'), 'one\n2\n');
  git(clone, 'commit', '--quiet', '-am', 'a commit');
  writeFileSync(join(clone, 'staged.txt'), 'staged\n');
  git(clone, 'add', 'staged.txt');
  writeFileSync(join(clone, 'image.bin'), Buffer.from([9, 0, 8, 0, 7]));
  writeFileSync(join(clone, 'untracked and odd\tname'), 'u');
  writeFileSync(join(clone, 'new.bin'), Buffer.from([0, 200, 0, 201]));
  writeFileSync(join(clone, 'run.sh'), '#!/bin/sh\n', { mode: 0o755 });
  symlinkSync('kept.txt', join(clone, 'link'));
  unlinkSync(join(clone, 'gone.txt'));
  mkdirSync(join(clone, 'ignored'));
  writeFileSync(join(clone, 'ignored/cache'), 'not this');
}

describe('the patch of a repository', () => {
  test('gives a fresh clone the same tree, with all commits, staged, unstaged and untracked files, modes, links and deletions', async () => {
    const place = cloned();
    changeALot(place.clone);
    const before = git(place.clone, 'status', '--porcelain');
    const patch = (await patchOf(place.clone)) ?? '';
    expect(git(place.clone, 'status', '--porcelain')).toBe(before);
    expect(readFileSync(patch, 'utf8')).not.toContain('not this');
    expect(treeWith(patch, place)).toBe(treeOf(place.clone));
  });

  test('is based on the cloned commit, even after branches have moved', async () => {
    const place = cloned();
    git(place.clone, 'checkout', '--quiet', '-b', 'other');
    writeFileSync(join(place.clone, 'new.txt'), 'n');
    git(place.clone, 'add', '.');
    git(place.clone, 'commit', '--quiet', '-m', 'x');
    git(place.clone, 'branch', '--quiet', '-D', 'main');
    git(place.clone, 'pack-refs', '--all');
    expect(await clonedAt(place.clone)).toBe(git(place.origin, 'rev-parse', 'HEAD').trim());
    expect(treeWith((await patchOf(place.clone)) ?? '', place)).toBe(treeOf(place.clone));
  });

  test('is undefined without changes, has all files of a new repository, and starts from the cloned commit if the run cloned the repository', async () => {
    const { workspace, clone, origin } = cloned();
    expect(await patchOf(clone)).toBeUndefined();
    git(clone, 'update-ref', '-d', baseRef);
    expect(await clonedAt(clone)).toBe(git(origin, 'rev-parse', 'HEAD').trim());
    const made = join(workspace, 'deep/made');
    mkdirSync(made, { recursive: true });
    git(made, 'init', '--quiet');
    writeFileSync(join(made, 'a'), 'A\n');
    expect(await gitRepositories(workspace)).toEqual([made, clone]);
    expect(readFileSync((await patchOf(made)) ?? '', 'utf8')).toContain('+A');
  });

  test('is refused if it is larger than the limit', async () => {
    const { clone } = cloned();
    execFileSync('sh', ['-c', 'head -c 300000 /dev/urandom > big'], { cwd: clone });
    await expect(patchOf(clone, 200_000)).rejects.toBeInstanceOf(OutputTooLarge);
  });

  test('is made without copies of the files on the disk', async () => {
    const { clone } = cloned();
    writeFileSync(join(clone, 'kept.txt'), randomBytes(2_000_000));
    for (let n = 0; n < 10; n += 1) writeFileSync(join(clone, `untracked-${n}`), randomBytes(1_000_000));
    const scratch = testFolder();
    const patch = repositoryPatch(clone, {
      scratch,
      path: process.env.PATH,
      maxBytes: 3_000_000,
      signal: AbortSignal.timeout(60_000),
    });
    await expect(patch).rejects.toBeInstanceOf(OutputTooLarge);
    const used = Number(execFileSync('du', ['-sb', scratch], { encoding: 'utf8' }).split('\t')[0]);
    expect(used).toBeLessThan(500_000);
  });

  test.skipIf(process.getuid?.() === 0)('leaves out only the files that cannot be read', async () => {
    const { clone } = cloned();
    for (const name of ['kept.txt', 'secret']) writeFileSync(join(clone, name), 'changed');
    for (const name of ['kept.txt', 'secret']) chmodSync(join(clone, name), 0);
    writeFileSync(join(clone, 'new'), 'new');
    const patch = readFileSync((await patchOf(clone)) ?? '', 'utf8');
    expect(patch).toContain('+new');
    expect(patch).not.toMatch(/kept.txt|secret/);
  });

  test('is refused before git reads a file that is larger than the limit', async () => {
    for (const name of ['hole', 'kept.txt']) {
      const { clone } = cloned();
      writeFileSync(join(clone, name), '');
      truncateSync(join(clone, name), 3 * 2 ** 30);
      const problem = `"${name}" has 3221225472 bytes, and a patch may have 100000000`;
      await expect(patchOf(clone)).rejects.toThrow(problem);
    }
  });

  test('includes files with names that are not UTF-8, empty files, files that replaced folders, and folders that replaced files', async () => {
    const place = cloned();
    const { clone, origin } = place;
    mkdirSync(join(origin, 'folder'));
    writeFileSync(join(origin, 'folder/inside'), 'i');
    writeFileSync(join(origin, 'file'), 'f');
    git(origin, 'add', '.');
    git(origin, 'commit', '--quiet', '-m', 'second');
    git(clone, 'pull', '--quiet');
    git(clone, 'update-ref', baseRef, 'HEAD');
    writeFileSync(Buffer.concat([Buffer.from(`${clone}/`), Buffer.from([0x61, 0xff, 0x0a, 0x62])]), 'odd');
    writeFileSync(join(clone, 'empty'), '');
    execFileSync('rm', ['-r', 'folder', 'file'], { cwd: clone });
    writeFileSync(join(clone, 'folder'), 'now a file');
    mkdirSync(join(clone, 'file'));
    writeFileSync(join(clone, 'file/inside'), 'now a folder');
    const patch = (await patchOf(clone)) ?? '';
    expect(treeWith(patch, place)).toBe(treeOf(clone));
  });

  test('is made without running programs that are named by the settings or the attributes of the repository or by a nested repository', async () => {
    const place = cloned();
    const { clone, top } = place;
    changeALot(clone);
    const trap = join(top, 'trap');
    const marker = join(top, 'ran');
    writeFileSync(trap, `#!/bin/sh\ntouch ${marker}\ncat\n`, { mode: 0o755 });
    const inner = join(clone, 'inner');
    mkdirSync(inner);
    git(inner, 'init', '--quiet');
    writeFileSync(join(inner, 'a'), 'a');
    git(inner, 'add', '.');
    git(inner, 'commit', '--quiet', '-m', 'i');
    git(clone, 'add', 'inner');
    git(clone, 'commit', '--quiet', '-m', 'with a repository inside');
    git(clone, 'update-ref', baseRef, 'HEAD');
    const names = ['core.fsmonitor', 'diff.external', 'diff.trap.command', 'diff.trap.textconv', 'filter.trap.clean'];
    const more = [
      'filter.trap.smudge',
      'filter.trap.process',
      'core.sshCommand',
      'core.pager',
      'core.alternateRefsCommand',
    ];
    for (const repository of [clone, inner]) {
      for (const name of [...names, ...more]) git(repository, 'config', name, trap);
      git(repository, 'config', 'core.hooksPath', top);
    }
    for (const hook of ['post-index-change', 'reference-transaction'])
      writeFileSync(join(top, hook), readFileSync(trap), { mode: 0o755 });
    writeFileSync(join(clone, '.gitattributes'), '* filter=trap diff=trap\n');
    writeFileSync(join(inner, 'b'), 'b');
    execFileSync('rm', ['-f', marker]);
    const patch = (await patchOf(clone)) ?? '';
    expect(existsSync(marker)).toBe(false);
    expect(readFileSync(patch, 'utf8')).toContain('run.sh');
    // Check that the trap of this test works: an ordinary call of git runs the program.
    git(clone, 'status', '--porcelain');
    expect(existsSync(marker)).toBe(true);
  });
});
