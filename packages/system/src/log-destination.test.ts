import { expect, test } from 'vitest';
import { type LogGap, openLogDestination } from './log-destination.ts';

/** A fake file with limited space. Like write(2), `write` stores only as many bytes as fit. */
function fakeFile(room: number) {
  let text = '';
  const file = {
    room,
    text: () => text,
    failure: 'ENOSPC',
    write: (_descriptor: number, bytes: Buffer): number => {
      const count = Math.min(bytes.byteLength, file.room);
      if (count === 0) throw Object.assign(new Error(`${file.failure}: no room`), { code: file.failure });
      file.room -= count;
      text += bytes.subarray(0, count).toString();
      return count;
    },
  };
  return file;
}

test('the destination writes complete lines in order, and reports the gap, when a full file has space again', () => {
  const file = fakeFile(8);
  const gaps: LogGap[] = [];
  const log = openLogDestination(2, (gap) => gaps.push(gap), file.write);
  for (const line of ['one\n', 'two and more\n', 'three\n']) log.write(line);
  expect(file.text()).toBe('one\ntwo ');
  expect(gaps).toEqual([]);
  file.room = Number.POSITIVE_INFINITY;
  log.write('four\n');
  expect(file.text()).toBe('one\ntwo and more\nthree\nfour\n');
  expect(gaps).toEqual([{ error: 'ENOSPC: no room', dropped: 0 }]);
});

test('the destination drops and counts lines beyond 1 MB', () => {
  const file = fakeFile(0);
  const gaps: LogGap[] = [];
  const log = openLogDestination(2, (gap) => gaps.push(gap), file.write);
  const line = `${'x'.repeat(1023)}\n`;
  for (let count = 0; count < 1030; count += 1) log.write(line);
  file.room = Number.POSITIVE_INFINITY;
  log.write('last\n');
  expect(file.text()).toHaveLength(1024 * 1024 + 5);
  expect(gaps).toEqual([{ error: 'ENOSPC: no room', dropped: 6 }]);
});

test('the destination writes waiting lines to a pipe with a slow reader, even if no further line is logged', async () => {
  const file = fakeFile(0);
  file.failure = 'EAGAIN';
  const log = openLogDestination(2, () => {}, file.write);
  log.write('one\n');
  file.room = 100;
  await expect.poll(() => file.text()).toBe('one\n');
});
