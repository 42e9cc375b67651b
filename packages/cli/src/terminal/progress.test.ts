import { expect, test, vi } from 'vitest';
import { progressLine, showProgress } from './progress.ts';

const mb = 1024 * 1024;
const arrived = { bytes: 800 * mb, newBytes: 400 * mb, elapsedMs: 4_000 };

test('the line has a bar, sizes, the speed of this process and the time that is left', () => {
  expect(progressLine(2000 * mb, arrived, 79)).toBe(
    '[#############--------------------]  40%  800 MB of 2.0 GB  100 MB/s  12 s left',
  );
  expect(progressLine(undefined, arrived, 79)).toBe('800 MB  100 MB/s');
  expect(progressLine(0, { bytes: 0, newBytes: 0, elapsedMs: 0 }, 79)).toContain('100%');
});

test.each([10, 20, 50, 60, 200])('the line fits into %i columns', (columns) => {
  expect(progressLine(2000 * mb, arrived, columns).length).toBeLessThanOrEqual(columns);
});

test('the line is shown on a terminal only, a few times in a second, and is removed at the end', () => {
  const shown: string[] = [];
  let time = 0;
  vi.spyOn(performance, 'now').mockImplementation(() => {
    time += 50;
    return time;
  });
  const show = (isTTY: boolean) => {
    const progress = showProgress({ isTTY, columns: 80, write: (text) => shown.push(text) }, mb, 0);
    for (let step = 1; step <= 16; step += 1) progress.set(step * 1000);
    progress.end();
  };
  show(false);
  expect(shown).toEqual([]);
  show(true);
  expect(shown).toHaveLength(5);
  expect(shown.at(-1)).toBe('\r\u001b[K');
  vi.restoreAllMocks();
});
