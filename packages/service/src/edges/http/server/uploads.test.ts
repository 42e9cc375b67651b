import { type ClientRequest, request } from 'node:http';
import { apiPrefix } from '@runyard/contract/wire/route';
import { afterEach, describe, expect, test } from 'vitest';
import { openTestService } from '../../../../test/service.ts';
import { oneUpload } from '../../../platform/uploads/lease.ts';

const service = await openTestService();
const { db } = service.deps;

const begun: ClientRequest[] = [];
afterEach(async () => {
  for (const upload of begun.splice(0)) upload.destroy();
  await leasesAre(0);
});

/** Begins an upload of many bytes and sends a few of them. */
function begin(url: string, key: string | null): ClientRequest {
  const upload = request(url.startsWith('http') ? url : service.baseUrl + apiPrefix + url, {
    method: 'PUT',
    headers: {
      'content-type': 'application/octet-stream',
      'content-length': 5 * 1024 * 1024,
      ...(key === null ? {} : { authorization: `Bearer ${key}` }),
    },
    agent: false,
  });
  upload.on('error', () => undefined);
  upload.write('some bytes');
  begun.push(upload);
  return upload;
}

async function leasesAre(count: number): Promise<void> {
  await expect.poll(async () => (await db.query('SELECT name FROM upload_leases')).length).toBe(count);
}

const send = (url: string, key: string | null) =>
  service.request('PUT', url, { key, raw: 'x', headers: { 'content-type': 'application/octet-stream' } });

describe.each([
  ['workspace', 1, async (_token: string): Promise<string> => '/harness-support/workspace?turn=1'],
  ['memory', 1, async (_token: string): Promise<string> => '/harness-support/memory?turn=1'],
  [
    'file that is handed over',
    16,
    async (key: string): Promise<string> => {
      const body = { turn: 1, files: [{ filename: 'a', size_bytes: 25 * 1024 * 1024 }] };
      const made = await service.request<{ files: { upload_url: string }[] }>(
        ...(['POST', '/harness-support/upload-snapshot', { key, body }] as const),
      );
      return made.body.files[0]?.upload_url ?? '';
    },
  ],
  [
    'artifact',
    4,
    async (key: string): Promise<string> => {
      const body = { artifact_type: 'FILE', data: { filename: 'a' } };
      const made = await service.request<{ upload_url: string }>(
        ...(['POST', '/harness-support/report-artifact', { key, body }] as const),
      );
      return made.body.upload_url;
    },
  ],
  [
    'file that is prepared for a follow-up',
    8,
    async (_token: string, runId: string): Promise<string> => {
      const body = { files: [{ filename: 'a', mime_type: 'text/plain' }] };
      const made = await service.request<{ attachments: { upload_url: string }[] }>(
        ...(['POST', `/agent/runs/${runId}/attachments/prepare`, { body }] as const),
      );
      return made.body.attachments[0]?.upload_url ?? '';
    },
  ],
] as const)('a %s', (_what, most, target) => {
  test('accepts the allowed number of uploads at once, then answers 429, and accepts one more when one has ended', async () => {
    const { runId, runToken } = await service.startExecution();
    const url: string = await target(runToken, runId);
    const key = url.startsWith('http') ? null : runToken;
    for (let n = 1; n <= most; n += 1) {
      begin(url, key);
      await leasesAre(n);
    }
    const problem = await service.problem(429, 'PUT', url, {
      key,
      raw: 'x',
      headers: { 'content-type': 'application/octet-stream' },
    });
    expect(problem.error_code).toBe('resource_unavailable');
    begun[0]?.destroy();
    await leasesAre(most - 1);
    expect((await send(url, key)).status).not.toBe(429);
  });
});

test('an upload in progress does not prevent an upload of another execution', async () => {
  const [one, other] = [await service.startExecution(), await service.startExecution()];
  const url = '/harness-support/workspace?turn=1';
  begin(url, one.runToken);
  await leasesAre(1);
  expect((await send(url, other.runToken)).status).toBe(200);
});

test('if a service process dies during an upload, another upload may take its place', async () => {
  const pieces = Promise.withResolvers<void>();
  async function* slow() {
    yield Buffer.from('a');
    await pieces.promise;
    yield Buffer.from('b');
  }
  const kind = { name: 'test', most: 1 };
  const drain = async (body: AsyncIterable<Uint8Array>) => {
    for await (const _ of body);
    return 'whole' as const;
  };
  const first = oneUpload(db, kind, slow(), drain);
  await leasesAre(1);
  expect(await oneUpload(db, kind, slow(), drain)).toBe('busy');
  await db.query(`UPDATE upload_leases SET expires_at = now() - interval '1 second'`);
  pieces.resolve();
  expect(await oneUpload(db, kind, slow(), drain)).toBe('whole');
  expect(await first).toBe('whole');
});
