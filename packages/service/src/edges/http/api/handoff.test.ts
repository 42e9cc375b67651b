import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { openTestService } from '../../../../test/service.ts';

const service = await openTestService();

interface Attachment {
  attachment_id: string;
  filename: string;
  download_url: string;
  mime_type?: string;
}
const list = async (runId: string) =>
  (await service.ok<{ attachments: Attachment[] }>('GET', `/agent/runs/${runId}/handoff/attachments`)).attachments;
const begin = async (key: string, turn: number, files: { filename: string; text: string }[]) =>
  (
    await service.ok<{ files: { filename: string; upload_url: string }[] }>(
      'POST',
      '/harness-support/upload-snapshot',
      {
        key,
        body: {
          turn,
          files: files.map(({ filename, text }) => ({ filename, mime_type: 'text/plain', size_bytes: text.length })),
        },
      },
    )
  ).files.map(({ upload_url }) => upload_url);
const put = async (url: string | undefined, raw: string) =>
  (await service.request('PUT', url ?? '', { key: null, raw, headers: { 'content-type': 'application/octet-stream' } }))
    .status;
const send = async (key: string, turn: number, files: { filename: string; text: string }[]) => {
  const urls = await begin(key, turn, files);
  for (const [index, { text }] of files.entries()) expect(await put(urls[index], text)).toBe(200);
};
const contents = async (runId: string) =>
  await Promise.all(
    (await list(runId)).map(async ({ filename, download_url }) => [
      filename,
      (await service.request('GET', download_url, { key: null })).text,
    ]),
  );
const blobsNow = async () => {
  let count = 0;
  for await (const _ of service.deps.blobs.list()) count += 1;
  return count;
};
const one = (text: string) => [{ filename: 'a.patch', text }];

test('a run without a snapshot has an empty list of files, and a run with a snapshot lists its files in order with signed URLs', async () => {
  const { runId, runToken } = await service.startExecution();
  expect(await list(runId)).toEqual([]);
  await send(runToken, 1, [
    { filename: 'repo.patch', text: 'diff' },
    { filename: 'a.txt', text: '' },
  ]);
  expect(await list(runId)).toEqual([
    {
      attachment_id: expect.any(String),
      filename: 'repo.patch',
      size_bytes: 4,
      download_url: expect.stringContaining('signature='),
      mime_type: 'text/plain',
    },
    expect.objectContaining({ filename: 'a.txt' }),
  ]);
  expect(await contents(runId)).toEqual([
    ['repo.patch', 'diff'],
    ['a.txt', ''],
  ]);
});

test('a new snapshot replaces the older one after the last byte of the new one has arrived', async () => {
  const before = await blobsNow();
  const { runId, runToken } = await service.startExecution();
  await send(runToken, 1, one('first'));
  const [url] = (await list(runId)).map(({ download_url }) => download_url);
  const [a, b] = await begin(runToken, 2, [
    { filename: 'a.patch', text: 'second' },
    { filename: 'b.patch', text: 'more' },
  ]);
  expect(await put(a, 'second')).toBe(200);
  expect(await contents(runId)).toEqual([['a.patch', 'first']]);
  expect(await put(b, 'more')).toBe(200);
  expect(await contents(runId)).toEqual([
    ['a.patch', 'second'],
    ['b.patch', 'more'],
  ]);
  await service.problem(404, 'GET', url ?? '', { key: null });
  expect(await blobsNow()).toBe(before + 2);
  await begin(runToken, 3, []);
  expect(await list(runId)).toEqual([]);
  expect(await blobsNow()).toBe(before);
});

test('an unfinished snapshot is discarded when the next one begins', async () => {
  const before = await blobsNow();
  const { runId, runToken } = await service.startExecution();
  const [a, b] = await begin(runToken, 1, [...one('half'), { filename: 'b', text: 'never' }]);
  await put(a, 'half');
  await send(runToken, 1, one('whole'));
  expect(await put(b, 'never')).toBe(404);
  expect(await contents(runId)).toEqual([['a.patch', 'whole']]);
  expect(await blobsNow()).toBe(before + 1);
});

test('files that arrive at the same time complete one snapshot', async () => {
  const { runId, runToken } = await service.startExecution();
  const files = Array.from({ length: 12 }, (_, n) => ({ filename: `${n}`, text: `text ${n}` }));
  const urls = await begin(runToken, 1, files);
  const statuses = await Promise.all(urls.map((url, index) => put(url, files[index]?.text ?? '')));
  expect(statuses).toEqual(files.map(() => 200));
  expect(await contents(runId)).toEqual(files.map(({ filename, text }) => [filename, text]));
});

test('a run shows the snapshot of its latest execution that has a snapshot', async () => {
  const first = await service.startExecution();
  await send(first.runToken, 1, one('first'));
  await service.deps.db.query(
    `INSERT INTO executions (id, run_id, team_id, number, phase, pool) SELECT gen_random_uuid(), run_id, team_id, 2, 'queued', pool FROM executions WHERE id = $1`,
    [first.executionId],
  );
  expect(await contents(first.runId)).toEqual([['a.patch', 'first']]);
});

test('a repeated PUT gets 200 with the same bytes, 409 with other bytes, 413 with too many bytes, and 400 with too few bytes', async () => {
  const { runId, runToken } = await service.startExecution();
  const [a, b] = await begin(runToken, 1, [...one('1234'), { filename: 'b', text: '12' }]);
  expect(await put(a, '12345')).toBe(413);
  expect(await put(a, '123')).toBe(400);
  expect(await list(runId)).toEqual([]);
  expect(await put(a, '1234')).toBe(200);
  expect(await put(a, '1234')).toBe(200);
  expect(await put(a, '4321')).toBe(409);
  expect(await put(b, '12')).toBe(200);
  expect(await contents(runId)).toEqual([
    ['a.patch', '1234'],
    ['b', '12'],
  ]);
  const [row] = await service.deps.db.query<{ sha256: Buffer }>(
    `SELECT f.sha256 FROM snapshot_files f JOIN snapshots s ON s.id = f.snapshot_id WHERE s.run_id = $1 AND f.position = 0`,
    [runId],
  );
  expect(row?.sha256.equals(createHash('sha256').update('1234').digest())).toBe(true);
});

test.each([
  ['more than 100 files', Array.from({ length: 101 }, () => ({ filename: 'a', size_bytes: 1 }))],
  ['a file of more than 25 MB', [{ filename: 'a', size_bytes: 25 * 1024 * 1024 + 1 }]],
  ['no name', [{ filename: '', size_bytes: 1 }]],
  ['a type that would end a header', [{ filename: 'a', size_bytes: 1, mime_type: 'text/plain\r\nx: y' }]],
])('a snapshot with %s gets 400', async (_name, files) => {
  const { runToken } = await service.startExecution();
  await service.problem(400, 'POST', '/harness-support/upload-snapshot', { key: runToken, body: { turn: 1, files } });
});

test("a read of a snapshot gets 404 for another team's run and an unknown id, and an upload URL accepts only the file of this URL", async () => {
  const { runId, runToken } = await service.startExecution();
  const path = `/agent/runs/${runId}/handoff/attachments`;
  await service.problem(404, 'GET', path, { key: service.otherKey });
  await service.problem(404, 'GET', '/agent/runs/x/handoff/attachments');
  const [a = '', b = ''] = await begin(runToken, 1, [...one('1'), { filename: 'b', text: '2' }]);
  const idOf = (url: string) => new URL(url).pathname.split('/').at(-1) ?? '';
  expect(await put(a.replace(idOf(a), idOf(b)), '2')).toBe(403);
});

test('the snapshot is deleted with its run', async () => {
  const before = await blobsNow();
  const { runId, runToken, executionId } = await service.startExecution();
  await send(runToken, 1, one('first'));
  const [{ download_url } = { download_url: '' }] = await list(runId);
  await service.request('POST', `/agent/runs/${runId}/cancel`);
  await service.deps.db.query(`UPDATE executions SET phase = 'ended' WHERE id = $1`, [executionId]);
  expect((await service.request('DELETE', `/agent/runs/${runId}`)).status).toBe(200);
  await service.problem(404, 'GET', download_url, { key: null });
  expect(await blobsNow()).toBe(before);
});
