import { describe, expect, it } from 'vitest';
import { readPushHead } from './read-commands.ts';

const a = 'a'.repeat(40);
const b = 'b'.repeat(40);
const line = (text: string) => `${(Buffer.byteLength(text) + 4).toString(16).padStart(4, '0')}${text}`;
const read = (...lines: string[]) => readPushHead(Buffer.from(lines.join('')));

describe('the beginning of a push', () => {
  it('contains commands and capabilities, and shows where the pack begins', () => {
    const text = [
      line(`shallow ${a}`),
      line(`${a} ${b} refs/heads/ä\0 report-status side-band-64k agent=git/2\n`),
      line(`${b} ${a} refs/heads/c`),
      '0000',
    ].join('');
    expect(readPushHead(Buffer.from(`${text}PACK`))).toEqual({
      kind: 'head',
      head: {
        commands: [
          { from: a, to: b, ref: 'refs/heads/ä' },
          { from: b, to: a, ref: 'refs/heads/c' },
        ],
        capabilities: ['report-status', 'side-band-64k', 'agent=git/2'],
        hasOptions: false,
        packAt: Buffer.byteLength(text),
      },
    });
  });

  it('ends after the push options', () => {
    const text = `${line(`${a} ${b} refs/heads/c\0push-options`)}0000${line('ci.skip')}0000`;
    expect(read(text, 'PACK')).toMatchObject({ kind: 'head', head: { hasOptions: true, packAt: text.length } });
    expect(read(text.slice(0, -4))).toMatchObject({ kind: 'more' });
  });

  it('may consist of a single flush packet', () => {
    expect(read('0000')).toMatchObject({ kind: 'head', head: { commands: [], packAt: 4 } });
  });

  it.each([
    ['a length that is no number', 'zzzz'],
    ['an empty line', '0004'],
    ['another mark than the flush', '0001'],
    ['a signed push', line('push-cert\0report-status')],
    ['an id in capitals', line(`${a.toUpperCase()} ${b} refs/heads/c\0`)],
    ['ids of two lengths', line(`${a} ${'b'.repeat(64)} refs/heads/c\0`)],
    ['a short id', line(`${a.slice(1)} ${b} refs/heads/c\0`)],
    ['a ref outside of refs/', line(`${a} ${b} HEAD\0`)],
    ['a ref with a space', line(`${a} ${b} refs/heads/c d\0`)],
    ['a ref with a line feed', line(`${a} ${b} refs/heads/c\nd\0`)],
    ['a ref that is very long', line(`${a} ${b} refs/heads/${'x'.repeat(300)}\0`)],
    ['no capabilities', line(`${a} ${b} refs/heads/c`)],
    ['capabilities at the second command', line(`${a} ${b} refs/heads/c\0x`) + line(`${a} ${b} refs/heads/d\0atomic`)],
    ['two marks of capabilities', line(`${a} ${b} refs/heads/c\0x\0y`)],
    ['a ref twice', line(`${a} ${b} refs/heads/c\0x`) + line(`${b} ${a} refs/heads/c`)],
  ])('is refused with %s', (_name, text) => {
    expect(read(text, '0000')).toMatchObject({ kind: 'bad' });
  });

  it('counts as incomplete if it is cut at any byte, and is read in the same way with any bytes after it', () => {
    const text = `${line(`${a} ${b} refs/heads/c\0report-status push-options`)}0000${line('x')}0000`;
    for (let end = 0; end < text.length; end += 1) expect(read(text.slice(0, end)).kind).toBe('more');
    expect(read(text)).toEqual(read(text, 'anything'));
  });

  it('causes no exception if its bytes are changed, and then gives only commands that these bytes contain', () => {
    const valid = Buffer.from(`${line(`${a} ${b} refs/heads/c\0report-status`)}0000`);
    let seed = 1;
    const random = (below: number) => {
      seed = (seed * 48_271) % 2_147_483_647;
      return seed % below;
    };
    for (let round = 0; round < 3_000; round += 1) {
      const bytes = Buffer.from(valid);
      for (let change = random(4); change >= 0; change -= 1) bytes[random(bytes.length)] = random(256);
      const found = readPushHead(bytes.subarray(0, random(bytes.length + 1)));
      if (found.kind !== 'head') continue;
      for (const { from, to, ref } of found.head.commands) expect(bytes.includes(`${from} ${to} ${ref}`)).toBe(true);
    }
  });
});
