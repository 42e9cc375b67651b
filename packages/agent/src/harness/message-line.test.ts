import { expect, test } from 'vitest';
import { readMessageLine } from './message-line.ts';

const message = { jsonrpc: '2.0', id: 1, result: { text: '\u001b[1m}' } };
const json = JSON.stringify(message);

test.each([
  ['alone', json],
  ['between spaces', `  \t${json} \r`],
  ['behind a byte order mark', `\ufeff${json}`],
  ['between colours', `\u001b[0;32m\u001b[?25h${json}\u001b[0m`],
  ['behind the title of a terminal', `\u001b]0;agent {1}\u0007${json}`],
  ['behind a string that ESC \\ ends', `\u001b]8;;http://x/\u001b\\ \u001b(B\u001b=${json}`],
])('reads a message %s', (_, line) => {
  expect(readMessageLine(line)).toEqual({ message, text: json });
});

test.each([
  ['text before it', `ready ${json}`],
  ['text behind it', `${json} ok`],
  ['an open terminal string before it', `\u001b]0;title${json}`],
  ['no object', '[1,2]'],
  ['no message', '{"not":"a message"}'],
  ['no end', '{"jsonrpc":"2.0"'],
])('reads no message from a line with %s', (_, line) => {
  expect(readMessageLine(line)).toBeUndefined();
});

test('reading a hostile line takes time in proportion to its length', () => {
  const before = process.threadCpuUsage().user;
  for (const part of ['\u001b]\u001b\\', '\u001b]', ' ', '\u001b[0'])
    expect(readMessageLine(`${part.repeat(500_000)}{`)).toBeUndefined();
  expect(process.threadCpuUsage().user - before).toBeLessThan(3_000_000);
});
