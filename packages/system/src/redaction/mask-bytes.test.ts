import { expect, it } from 'vitest';
import { createByteMask } from './mask-bytes.ts';

const secret = 'pässword with "quotes"';

async function maskedOf(pieces: readonly Buffer[], secrets = [secret]): Promise<Buffer> {
  async function* body() {
    yield* pieces;
  }
  const parts: Uint8Array[] = [];
  for await (const part of createByteMask(secrets).stream(body())) parts.push(part);
  return Buffer.concat(parts);
}

it('the mask hides a secret however the bytes are split, and keeps all other bytes and the size', async () => {
  const around = Buffer.from([0, 255, 10, 200]);
  const file = Buffer.concat([around, Buffer.from(secret), around]);
  const length = Buffer.byteLength(secret);
  for (let cut = 0; cut <= file.length; cut += 1) {
    const masked = await maskedOf([file.subarray(0, cut), file.subarray(cut)]);
    expect(masked).toEqual(Buffer.concat([around, Buffer.from('*'.repeat(length)), around]));
  }
});

it('the mask hides the base64 form of a secret and keeps the line breaks in it', async () => {
  const long = 'k9/Q'.repeat(40);
  const lines = Buffer.from(long).toString('base64').replaceAll(/.{76}/g, '$&\n');
  const masked = await maskedOf([Buffer.from(lines)], [long]);
  expect(masked.toString()).toMatch(/^[*\n]+.{0,4}$/);
  expect(masked).toHaveLength(lines.length);
});

it('the mask does not change files without secrets', async () => {
  const bytes = Buffer.from([1, 2, 3]);
  expect(await maskedOf([bytes], [])).toEqual(bytes);
  expect(createByteMask([]).whole(bytes)).toEqual(bytes);
});
