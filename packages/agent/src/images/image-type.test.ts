import { expect, test } from 'vitest';
import { imageTypeOf } from './image-type.ts';

test.each([
  ['\x89PNG\r\n\x1a\n', 'image/png'],
  ['\xff\xd8\xff\xe0', 'image/jpeg'],
  ['GIF87a', 'image/gif'],
  ['GIF89a', 'image/gif'],
  ['RIFF\x01\x02\x03\x04WEBPVP8 ', 'image/webp'],
  ['RIFF\x01\x02\x03\x04WAVE', undefined],
  ['<svg xmlns=', undefined],
  ['\x89PN', undefined],
  ['', undefined],
])('%j is %s', (bytes, type) => {
  expect(imageTypeOf(Buffer.from(bytes, 'latin1'))).toBe(type);
});
