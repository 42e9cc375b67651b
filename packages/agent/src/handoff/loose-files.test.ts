import { mkdirSync, symlinkSync, truncateSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { testFolder } from '../../test/agent.ts';
import { looseFiles, looseLimits } from './loose-files.ts';

const workspaceWith = (...paths: string[]): string => {
  const workspace = testFolder();
  for (const path of paths) {
    mkdirSync(join(workspace, dirname(path)), { recursive: true });
    writeFileSync(join(workspace, path), path);
  }
  return workspace;
};

test('lists the files of a workspace, without hidden and installed files and without attachments', async () => {
  const workspace = workspaceWith(
    'report.md',
    'src/a.ts',
    'src/attachments/b.ts',
    '.env',
    '.cache/c',
    'node_modules/d/e.js',
    'attachments/f.pdf',
  );
  expect(await looseFiles(workspace)).toEqual(['report.md', 'src/a.ts', 'src/attachments/b.ts']);
});

test('does not follow links, and leaves out other things than files', async () => {
  const secret = workspaceWith('secret/key');
  const workspace = workspaceWith('a');
  symlinkSync(join(secret, 'secret'), join(workspace, 'folder'));
  symlinkSync(join(secret, 'secret/key'), join(workspace, 'file'));
  expect(await looseFiles(workspace)).toEqual(['a']);
});

test('lists the newest files if there are many, and no file that is too large', async () => {
  const names = Array.from({ length: looseLimits.files + 5 }, (_, index) => `f${String(index).padStart(2, '0')}`);
  const workspace = workspaceWith('large', ...names);
  for (const [index, name] of names.entries()) utimesSync(join(workspace, name), 1_000 + index, 1_000 + index);
  truncateSync(join(workspace, 'large'), looseLimits.bytesOfOne + 1);
  expect(await looseFiles(workspace)).toEqual(names.slice(5));
});

test('lists as many files as the limit of bytes allows', async () => {
  const workspace = workspaceWith('a', 'b', 'c', 'd', 'e', 'f');
  for (const name of ['a', 'b', 'c', 'd', 'e', 'f']) truncateSync(join(workspace, name), looseLimits.bytesOfOne);
  expect(await looseFiles(workspace)).toHaveLength(looseLimits.bytes / looseLimits.bytesOfOne);
});
