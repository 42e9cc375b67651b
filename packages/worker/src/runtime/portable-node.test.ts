import { execFileSync } from 'node:child_process';
import { mkdtemp, open, rm } from 'node:fs/promises';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { placePortableNode, portableChanges } from './portable-node.ts';

let folder = '';
beforeEach(async () => {
  // Its path replaces the interpreter's, which is not longer.
  folder = await mkdtemp('/tmp/ry');
});
afterEach(() => rm(folder, { recursive: true }));

const reader = async (file: string) => {
  const handle = await open(file);
  return {
    read: async (offset: number, bytes: number) => (await handle.read(Buffer.alloc(bytes), 0, bytes, offset)).buffer,
    close: () => handle.close(),
  };
};

test('places a Node that uses the libraries beside it and no others', async () => {
  await placePortableNode(folder, folder);
  const script = 'JSON.stringify([process.execPath, ...process.report.getReport().sharedObjects.slice(1)])';
  const printed = execFileSync(path.join(folder, 'node'), ['-p', script], {
    encoding: 'utf8',
    env: { LD_LIBRARY_PATH: '/lib/x86_64-linux-gnu' },
  });
  const files: string[] = JSON.parse(printed);
  expect(files.length).toBeGreaterThan(4);
  for (const file of files) expect(file.startsWith(`${folder}/`), file).toBe(true);
});

test('refuses a folder whose path is too long for the program, and a file that is no program', async () => {
  const node = await reader(process.execPath);
  await expect(portableChanges(node.read, '/a/folder/with/a/long/path')).rejects.toThrow('are needed');
  await node.close();
  const script = await reader(import.meta.filename);
  await expect(portableChanges(script.read, '/a')).rejects.toThrow('ELF');
  await script.close();
});
