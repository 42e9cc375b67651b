import { PassThrough } from 'node:stream';
import { expect, test } from 'vitest';
import { keepOutputTail } from './output-tail.ts';

test('keepOutputTail keeps the last 64 KB of both streams together', async () => {
  const [out, err] = [new PassThrough(), new PassThrough()];
  const tail = keepOutputTail([out, err]);
  await new Promise((resolve) => out.write(Buffer.alloc(1024 * 1024, 'a'), resolve));
  await new Promise((resolve) => setImmediate(resolve));
  err.write('the end');
  await new Promise((resolve) => setImmediate(resolve));
  expect(tail.text()).toHaveLength(64 * 1024);
  expect(tail.text()).toMatch(/^a+the end$/);
});

test('keepOutputTail replaces invalid UTF-8 and drops NUL characters', () => {
  const out = new PassThrough();
  const tail = keepOutputTail([out]);
  out.write(Buffer.from([0x61, 0x00, 0xff, 0x62]));
  out.resume();
  return new Promise<void>((resolve) =>
    setImmediate(() => {
      expect(tail.text()).toBe('a\ufffdb');
      resolve();
    }),
  );
});

test('keepOutputTail pauses if a program writes very much output', async () => {
  const out = new PassThrough();
  const tail = keepOutputTail([out]);
  for (let piece = 0; piece < 80; piece++) out.write(Buffer.alloc(64 * 1024));
  await new Promise((resolve) => setImmediate(resolve));
  expect(out.isPaused()).toBe(true);
  tail.close();
  expect(out.isPaused()).toBe(false);
});
