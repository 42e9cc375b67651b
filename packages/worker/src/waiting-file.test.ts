import { mkdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, test, vi } from 'vitest';
import { newFolder } from '../../../test/support/close-at-end.ts';
import { keepWaitingFile, readWaitingFile } from './waiting-file.ts';

const dataDir = newFolder();
const folder = path.join(dataDir, 'worker');
await mkdir(folder);
const onFault = (error: Error) => {
  throw error;
};

test('readWaitingFile returns the state of the pool while the worker runs, and undefined after that', () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  let pool = { wanted: 1, ready: 0, taken: 0, failed: 0 };
  const stop = keepWaitingFile(folder, () => pool, onFault);
  expect(readWaitingFile(dataDir)).toMatchObject({ pid: process.pid, pool });
  pool = { wanted: 1, ready: 1, taken: 3, failed: 0 };
  vi.advanceTimersByTime(5000);
  expect(readWaitingFile(dataDir)?.pool).toEqual(pool);
  stop();
  vi.useRealTimers();
  expect(readWaitingFile(dataDir)).toBeUndefined();
});

test('readWaitingFile ignores a damaged file and the file of a dead worker', async () => {
  keepWaitingFile(folder, () => ({ wanted: 1, ready: 1, taken: 0, failed: 0 }), onFault);
  const file = path.join(folder, 'waiting.json');
  const text = await readFile(file, 'utf8');
  expect(readWaitingFile(dataDir)).toBeDefined();
  for (const damaged of [
    text.replace(`"pid":${process.pid}`, '"pid":999999999'),
    text.replace('"ready":1', '"ready":"1"'),
    text.replace('"ready":1', '"failure":1,"ready":1'),
    text.slice(0, -4),
  ]) {
    expect(damaged).not.toBe(text);
    await writeFile(file, damaged);
    expect(readWaitingFile(dataDir), damaged).toBeUndefined();
  }
});
