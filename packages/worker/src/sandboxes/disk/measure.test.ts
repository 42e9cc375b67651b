import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { newFolder } from '../../../../../test/support/close-at-end.ts';
import { usedInFolders } from './measure.ts';

const megabyte = 1024 * 1024;
let folder: string;
beforeEach(() => {
  folder = newFolder();
});

const measure = (pids: readonly number[]) => usedInFolders([folder], async () => pids, AbortSignal.timeout(30_000));

test('usedInFolders counts files in the folders and deleted files that are still open, each once', async () => {
  await writeFile(path.join(folder, 'named'), Buffer.alloc(2 * megabyte, 1));
  const script = 'exec 3>gone 4<gone; rm gone; head -c 5242880 /dev/zero >&3; exec 5</dev/null; echo there; cat';
  const child = spawn('sh', ['-c', script], { cwd: folder, stdio: ['pipe', 'pipe', 'ignore'] });
  try {
    await once(child.stdout, 'data');
    const pid = child.pid ?? 0;
    expect(Math.round((await measure([])) / megabyte)).toBe(2);
    expect(Math.round((await measure([pid, pid])) / megabyte)).toBe(7);
  } finally {
    child.kill('SIGKILL');
  }
});

test('usedInFolders rejects if a folder cannot be counted', async () => {
  const gone = path.join(folder, 'x'.repeat(300));
  await expect(usedInFolders([gone], async () => [], AbortSignal.timeout(30_000))).rejects.toThrow(
    'File name too long',
  );
});
