import { maxAttachmentBytes, maxPreparedOfCaller, maxPreparedOfTeam } from '@runyard/contract/limits';
import { PrepareAttachmentsResponse } from '@runyard/contract/runs/prepared-attachments';
import { afterEach, expect, test } from 'vitest';
import { openTestService } from '../../../../test/service.ts';

const service = await openTestService();
const { db } = service.deps;
afterEach(async () => void (await db.query('DELETE FROM prepared_attachments')));

const nobody = '01900000-0000-7000-8000-000000000000';
const begin = async () => {
  const started = await service.startExecution();
  await service.begin(started.runToken);
  return started;
};
const filesOf = (count: number) =>
  Array.from({ length: count }, (_, index) => ({ filename: `${index}.txt`, mime_type: 'text/plain' }));
const preparePath = (runId: string) => `/agent/runs/${runId}/attachments/prepare`;
const prepare = async (runId: string, options: { key?: string; count?: number } = {}) => {
  const { key = service.key, count = 1 } = options;
  const [first] = PrepareAttachmentsResponse.parse(
    await service.ok('POST', preparePath(runId), { key, body: { files: filesOf(count) } }),
  ).attachments;
  if (!first) throw new Error('nothing was prepared');
  return first;
};
const put = (url: string, raw: string | Uint8Array<ArrayBuffer>) =>
  service.request('PUT', url, { key: null, raw, headers: { 'content-type': 'text/plain' } });
const uploaded = async (runId: string, key?: string) => {
  const { attachment_id, upload_url } = await prepare(runId, key ? { key } : {});
  expect((await put(upload_url, 'before')).status).toBe(200);
  return { attachment_id };
};
const followUp = (runId: string, attachments: readonly object[]) => ({
  path: `/agent/runs/${runId}/followups`,
  body: { message: 'Look.', attachments },
});
const itemsOf = async (key: string) => {
  type Items = { items: { attachments?: { file_name: string; path: string; size_bytes: number }[] }[] };
  return (await service.ok<Items>('GET', '/harness-support/inbox', { key })).items;
};

test('a follow-up accepts a previously uploaded file once, together with a file whose bytes it contains', async () => {
  const { runId, runToken } = await begin();
  const { attachment_id, upload_url, upload_target } = await prepare(runId);
  expect(upload_target).toEqual({
    url: upload_url,
    method: 'PUT',
    headers: { 'Content-Type': 'text/plain' },
    fields: [],
  });
  expect((await put(upload_url, 'before')).status).toBe(200);
  const inline = { file_name: 'now.txt', mime_type: 'text/plain', data: 'bm93' };
  const { path, body } = followUp(runId, [{ attachment_id, file_name: 'named.txt' }, inline]);
  expect((await service.request('POST', path, { body })).status).toBe(200);
  const end = { turn: 1, success: true, summary: '' };
  await service.request('POST', '/harness-support/finish-task', { key: runToken, body: end });
  const [item] = await itemsOf(runToken);
  const files = await Promise.all(
    (item?.attachments ?? []).map(async (file) => {
      const { text } = await service.request('GET', file.path.replace('/api/v1', ''), { key: runToken });
      return [file.file_name, file.size_bytes, text];
    }),
  );
  expect(files.sort()).toEqual([
    ['named.txt', 6, 'before'],
    ['now.txt', 3, 'now'],
  ]);
  await service.problem(422, 'POST', path, { body });
  expect((await put(upload_url, 'before')).status).toBe(404);
});

test('a follow-up is refused as a whole if it names a file that is not uploaded, or that belongs to another sender or run', async () => {
  const { runId, runToken } = await begin();
  const other = await begin();
  const good = await uploaded(runId);
  const { attachment_id: empty } = await prepare(runId);
  const wrong = [
    [{ attachment_id: empty }],
    [await uploaded(other.runId)],
    [await uploaded(runId, await service.newKey({ role: 'member' }))],
    [{ attachment_id: nobody }],
    [{ attachment_id: 'no-id' }],
    [good, good],
  ];
  for (const attachments of wrong) {
    const { path, body } = followUp(runId, attachments);
    const { detail } = await service.problem(422, 'POST', path, { body });
    expect(detail).toContain(attachments.at(-1)?.attachment_id);
  }
  expect(await itemsOf(runToken)).toEqual([]);
  const { path, body } = followUp(runId, [good]);
  expect((await service.request('POST', path, { body })).status).toBe(200);
});

test.each([
  ['bytes and an id', { attachment_id: nobody, mime_type: 'a/b', data: '' }, ['mime_type', 'data']],
  ['neither', { file_name: 'a', mime_type: 'a/b' }, ['data']],
  ['an empty name', { attachment_id: nobody, file_name: '' }, ['file_name']],
])('a file with %s is refused with the name of the member', async (_, file, members) => {
  const { path, body } = followUp(await service.newRun(), [file]);
  const { errors } = await service.problem(400, 'POST', path, { body });
  expect(errors?.map(({ path: at }) => at)).toEqual(members.map((member) => `attachments.0.${member}`));
});

test('files for a conversation are prepared for its latest run', async () => {
  const { runId } = await begin();
  const run = await service.request<{ conversation_id: string }>('GET', `/agent/runs/${runId}`);
  const of = (id: string) => `/agent/conversations/${id}/attachments/prepare`;
  const body = { files: filesOf(1) };
  const headers = { 'idempotency-key': 'once' };
  await service.ok('POST', of(run.body.conversation_id), { body, headers });
  await service.problem(409, 'POST', of(run.body.conversation_id), { body: { files: filesOf(2) }, headers });
  expect(await db.query('SELECT run_id FROM prepared_attachments')).toEqual([{ run_id: runId }]);
  await service.problem(404, 'POST', of(nobody), { body });
  await service.problem(404, 'POST', of('x'), { body });
  await service.problem(404, 'POST', of(run.body.conversation_id), { key: service.otherKey, body });
});

test('a caller and a team have a limited number of files that no follow-up has used', async () => {
  const runId = await service.newRun();
  const refused = async (key: string) =>
    (await service.problem(429, 'POST', preparePath(runId), { key, body: { files: filesOf(1) } })).detail;
  await prepare(runId, { count: 25 });
  await service.problem(400, 'POST', preparePath(runId), { body: { files: filesOf(26) } });
  await prepare(runId, { count: maxPreparedOfCaller - 25 });
  expect(await refused(service.key)).toContain(`You have ${maxPreparedOfCaller}`);
  for (let others = maxPreparedOfTeam - maxPreparedOfCaller; others > 0; others -= 25)
    await prepare(runId, { key: await service.newKey(), count: 25 });
  expect(await refused(await service.newKey())).toContain(`The team has ${maxPreparedOfTeam}`);
  await service.problem(404, 'POST', preparePath(runId), { key: service.otherKey, body: { files: filesOf(1) } });
});

test('viewers and agents in sandboxes cannot prepare files', async () => {
  const { runId, runToken } = await begin();
  const body = { files: filesOf(1) };
  await service.problem(403, 'POST', preparePath(runId), { key: await service.newKey({ role: 'viewer' }), body });
  await service.problem(401, 'POST', preparePath(runId), { key: runToken, body });
});

test('an upload needs its own signed URL, has a maximum size, and cannot replace other bytes', async () => {
  const runId = await service.newRun();
  const [one, two] = [await prepare(runId), await prepare(runId)];
  const swapped = one.upload_url.replace(one.attachment_id, two.attachment_id);
  expect((await put(swapped, 'a')).status).toBe(403);
  expect((await put(one.upload_url, new Uint8Array(maxAttachmentBytes + 1))).status).toBe(413);
  for (const [bytes, status] of [
    ['a', 200],
    ['a', 200],
    ['b', 409],
  ] as const)
    expect((await put(one.upload_url, bytes)).status).toBe(status);
});
