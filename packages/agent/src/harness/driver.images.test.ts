import { describe, expect, test } from 'vitest';
import { drive } from '../../test/driver.ts';
import type { PromptImage } from '../images/images.ts';

const image = (size: number, path = 'attachments/a.png'): PromptImage => ({
  path,
  type: 'image/png',
  bytes: Buffer.alloc(size, 7),
});

describe('images', () => {
  test('are sent after the text of the prompt if the harness accepts images', async () => {
    const { run, text } = drive('echo-images');
    await run([image(3)]);
    expect(JSON.parse(text())).toEqual([
      { type: 'text', text: 'Do it.' },
      { type: 'image', mimeType: 'image/png', data: Buffer.alloc(3, 7).toString('base64') },
    ]);
  });

  test('are not sent if the harness accepts no images, and a notice lists each image', async () => {
    const { run, text, of } = drive('echo');
    await run([image(3)]);
    expect(JSON.parse(text())).toEqual([{ type: 'text', text: 'Do it.' }]);
    expect(of('notice').map(({ name, data }) => [name, data])).toEqual([
      ['image_not_sent', { path: 'attachments/a.png', reason: expect.stringContaining('does not accept images') }],
    ]);
  });

  test('are omitted if they are too large, and the other images are sent', async () => {
    const { run, text, of } = drive('echo-images');
    await run([image(4 * 1024 * 1024, 'attachments/big.png'), image(3)]);
    expect(JSON.parse(text())).toHaveLength(2);
    expect(of('notice').map(({ data }) => data)).toEqual([
      { path: 'attachments/big.png', reason: expect.stringContaining('5242880') },
    ]);
  });
});
