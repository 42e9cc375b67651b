import { Readable } from 'node:stream';
import { setImmediate as turn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { peekable, readHead } from './peekable.ts';

const line = (text: string): string => (text.length + 4).toString(16).padStart(4, '0') + text;
const commandOf = (n: number): string => `${'0'.repeat(40)} ${'1'.repeat(40)} refs/heads/b${n}`;

test('the commands of a push are parsed only a few times, even if the push arrives in small pieces', async () => {
  const lines = Array.from({ length: 100 }, (_, n) => line(`${commandOf(n)}${n === 0 ? '\0report-status' : ''}`));
  const push = Buffer.from(`${lines.join('')}0000PACK of the push`);
  const pieces = async function* () {
    for (let at = 0; at < push.length; at += 1) {
      yield push.subarray(at, at + 1);
      await turn();
    }
  };
  const peeked = peekable(Readable.from(pieces(), { objectMode: false, highWaterMark: 1 }));
  const sizes: number[] = [];
  const read = await readHead({
    read: async (bytes) => {
      const whole = await peeked.read(bytes);
      sizes.push(whole.length);
      return whole;
    },
  });
  expect(read.kind === 'head' && read.head.commands.length).toBe(100);
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(4 * push.length);
});
