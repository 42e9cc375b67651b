import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { outputsOf } from './demultiplex.ts';

const piece = (stream: number, content: string): Buffer => {
  const header = Buffer.alloc(8);
  header[0] = stream;
  header.writeUInt32BE(Buffer.byteLength(content), 4);
  return Buffer.concat([header, Buffer.from(content)]);
};

test.each([1, 3, 7, 8, 100])(
  'outputsOf joins standard output and standard error if they arrive in chunks of %i bytes',
  async (size) => {
    const all = Buffer.concat([piece(1, 'one'), piece(2, 'two'), piece(1, ''), piece(1, 'three')]);
    const source = new PassThrough();
    const output = text(outputsOf(source, all.subarray(0, 5)));
    for (let at = 5; at < all.length; at += size) source.write(all.subarray(at, at + size));
    source.end();
    expect(await output).toBe('onetwothree');
  },
);

test('outputsOf ends when the connection ends, even in the middle of a piece', async () => {
  const source = new PassThrough();
  const output = text(outputsOf(source, Buffer.alloc(0)));
  source.write(piece(1, 'whole').subarray(0, 10));
  source.destroy();
  expect(await output).toBe('wh');
});
