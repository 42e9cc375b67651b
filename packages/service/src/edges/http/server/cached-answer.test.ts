import { get, type IncomingMessage } from 'node:http';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import Fastify from 'fastify';
import { afterEach, describe, expect, test } from 'vitest';
import { openTestService } from '../../../../test/service.ts';
import { cachedAnswer } from './cached-answer.ts';

const service = await openTestService();

async function ask(url: string, headers: Record<string, string> = {}) {
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    get(url, { headers, agent: false }, resolve).on('error', reject);
  });
  const parts: Buffer[] = [];
  for await (const part of response) parts.push(part as Buffer);
  return { status: response.statusCode, headers: response.headers, bytes: Buffer.concat(parts) };
}

describe.each(['/docs', '/api/v1/openapi.json', '/errors'])('%s', (path) => {
  test('compresses the answer as the client accepts it, with a strong tag for each coding', async () => {
    const url = service.baseUrl + path;
    const [plain, gzip, br] = [
      await ask(url),
      await ask(url, { 'accept-encoding': 'br;q=0, gzip' }),
      await ask(url, { 'accept-encoding': 'gzip, deflate, br' }),
    ];
    expect([plain, gzip, br].map(({ headers }) => headers['content-encoding'])).toEqual([undefined, 'gzip', 'br']);
    expect(gunzipSync(gzip.bytes).equals(plain.bytes)).toBe(true);
    expect(brotliDecompressSync(br.bytes).equals(plain.bytes)).toBe(true);
    expect(br.bytes.length).toBeLessThan(plain.bytes.length / 2);
    const tags = [plain, gzip, br].map(({ headers }) => headers.etag);
    expect(new Set(tags).size).toBe(3);
    for (const tag of tags) expect(tag).toMatch(/^"[\w-]+"$/);
  });

  test('does not send the answer again to a client that has it', async () => {
    const url = service.baseUrl + path;
    const { headers } = await ask(url);
    const again = await ask(url, { 'if-none-match': `"other", ${headers.etag}` });
    expect([again.status, again.bytes.length, again.headers.etag]).toEqual([304, 0, headers.etag]);
    expect((await ask(url, { 'if-none-match': '"other"' })).status).toBe(200);
  });
});

describe('a cached answer', () => {
  let close: (() => Promise<void>) | undefined;
  afterEach(async () => await close?.());

  test('is rendered once for any number of requests, and again after its source has changed', async () => {
    const app = Fastify();
    close = () => app.close();
    let from = 'a';
    let made = 0;
    const send = cachedAnswer(
      () => from,
      (of) => {
        made += 1;
        return `made from ${of}`;
      },
    );
    app.get('/', (_request, reply) => send(reply));
    const url = await app.listen({ host: '127.0.0.1', port: 0 });
    const answers = await Promise.all(Array.from({ length: 50 }, () => ask(url)));
    expect(new Set(answers.map(({ bytes }) => bytes.toString()))).toEqual(new Set(['made from a']));
    expect(made).toBe(1);
    from = 'b';
    const changed = await ask(url, { 'if-none-match': answers[0]?.headers.etag ?? '' });
    expect([changed.status, changed.bytes.toString(), made]).toEqual([200, 'made from b', 2]);
  });
});
