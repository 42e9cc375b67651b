import { gzipSync } from 'node:zlib';
import { afterEach, describe, expect, test } from 'vitest';
import { openTestService } from '../../../../test/service.ts';

const service = await openTestService();

describe('POST /agent/runs creates nothing and answers', () => {
  afterEach(async () => {
    expect(await service.deps.db.query('SELECT id FROM runs')).toEqual([]);
  });

  test('400 for invalid UTF-8', async () => {
    const raw = new Uint8Array(
      Buffer.concat([Buffer.from('{"prompt":"'), Buffer.from([0xff, 0xfe]), Buffer.from('"}')]),
    );
    await service.problem(400, 'POST', '/agent/runs', { raw, headers: { 'content-type': 'application/json' } });
  });

  test('413 for a body over 64 MB', async () => {
    const raw = `{"prompt":"a","x":"${'x'.repeat(64 * 1024 * 1024)}"}`;
    await service.problem(413, 'POST', '/agent/runs', { raw, headers: { 'content-type': 'application/json' } });
  });

  test('415 that names the accepted coding, for a compressed body', async () => {
    const headers = { 'content-type': 'application/json', 'content-encoding': 'gzip' };
    const answer = await service.request('POST', '/agent/runs', { raw: gzipSync('{"prompt":"a"}'), headers });
    expect([answer.status, answer.headers.get('accept-encoding')]).toEqual([415, 'identity']);
  });

  test('415 for a form', async () => {
    await service.problem(415, 'POST', '/agent/runs', {
      raw: 'prompt=a',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
    });
  });
});
