import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, utimesSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { keepAliveFile } from './alive-file.ts';

test('the file tells whether the worker is connected, its time is new, and it is gone after the end', () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'runyard-alive-'));
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  onTestFinished(() => {
    vi.useRealTimers();
    rmSync(folder, { recursive: true });
  });
  const file = path.join(folder, 'alive');
  let isConnected = false;
  const stop = keepAliveFile(folder, () => isConnected);
  expect(readFileSync(file, 'utf8')).toBe('not connected\n');
  isConnected = true;
  vi.advanceTimersByTime(5000);
  expect(readFileSync(file, 'utf8')).toBe('connected\n');
  utimesSync(file, 1, 1);
  vi.advanceTimersByTime(5000);
  expect(Date.now() - statSync(file).mtimeMs).toBeLessThan(60_000);
  rmSync(file);
  vi.advanceTimersByTime(10_000);
  expect(readFileSync(file, 'utf8')).toBe('connected\n');
  stop();
  expect(readdirSync(folder)).toEqual([]);
});
