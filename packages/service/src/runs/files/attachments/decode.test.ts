import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { decodeAttachments } from './decode.ts';

const decode = (data: string) =>
  decodeAttachments({ attachments: [{ file_name: 'a', mime_type: 'text/plain', data }] });

test.each([0, 1, 2, 3, 4, 48 * 1024 - 1, 48 * 1024, 48 * 1024 + 1, 200_000])('decodes %i bytes', (size) => {
  const bytes = randomBytes(size);
  const { attachments, faults } = decode(bytes.toString('base64'));
  expect([attachments.map((each) => each.bytes), faults]).toEqual([[bytes], []]);
});

const long = randomBytes(100_000).toString('base64');

test.each([
  ['without its padding', 'YQ'],
  ['with other bits in its last character', 'YR=='],
  ['of the alphabet for URLs', '-_-_'],
  ['with a line break', 'YWJj\nYWJj'],
  ['with a wrong character near the end', `${long.slice(0, -9)}-${long.slice(-8)}`],
  ['with more after the end', `${long}====`],
])('refuses text %s', (_, data) => {
  expect(decode(data)).toMatchObject({ attachments: [], faults: [{ path: 'attachments.0.data' }] });
});
