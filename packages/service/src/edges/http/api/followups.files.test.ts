import { randomUUIDv7 } from 'node:crypto';
import { expect, test } from 'vitest';
import { deleteDetail } from '../../../../test/retention.ts';
import { openTestService } from '../../../../test/service.ts';
import { maxBytesInRow } from '../../../runs/files/attachments/store.ts';

const service = await openTestService();

const path = (runId: string) => `/agent/runs/${runId}/followups`;
const file = (file_name: string, text: string) => ({
  file_name,
  mime_type: 'text/plain',
  data: Buffer.from(text).toString('base64'),
});
/** A file that is too large for its database row. */
const large = (text: string) => file('large.txt', text.repeat(maxBytesInRow + 1));
interface Told {
  file_name: string;
  size_bytes: number;
  path: string;
  earlier?: boolean;
}
const at = '2026-01-02T03:04:05.000Z';
const events = (key: string, ...events: object[]) => service.report(key, events);
const begin = (key: string) =>
  events(
    key,
    { seq: 1, occurred_at: at, type: 'agent_started', harness: 'oz', model_id: 'runbook' },
    { seq: 2, occurred_at: at, type: 'turn_started', step_id: 's1', prompt: 'Go.' },
  );
const taskOf = async (key: string) =>
  await service.ok<{ prompt: string; attachments: Told[] }>('POST', '/harness-support/resolve-prompt', {
    key,
    body: {},
  });
const finish = (key: string, body: object) => service.request('POST', '/harness-support/finish-task', { key, body });
const inboxOf = async (key: string) =>
  (
    await service.ok<{ items: { id: string; message: string; attachments?: Told[] }[] }>(
      'GET',
      '/harness-support/inbox',
      { key },
    )
  ).items;
const read = async (key: string, { path }: Told) =>
  (await service.request('GET', path.replace('/api/v1', ''), { key })).text;
const blobsNow = async () => {
  const keys: string[] = [];
  for await (const { key } of service.deps.blobs.list()) keys.push(key);
  return keys.sort();
};

test('the task of a queued run lists the files of a follow-up after the files of the request', async () => {
  const { runId, runToken } = await service.startExecution({ attachments: [file('a.txt', 'A')] });
  expect(
    await service.ok('POST', path(runId), { body: { message: 'B', attachments: [file('b.txt', 'B')] } }),
  ).toMatchObject({ outcome: 'queue_pending', run_id: runId });
  const task = await taskOf(runToken);
  expect(task.attachments.map(({ file_name, earlier }) => [file_name, earlier])).toEqual([
    ['a.txt', undefined],
    ['b.txt', undefined],
  ]);
  expect(await Promise.all(task.attachments.map((each) => read(runToken, each)))).toEqual(['A', 'B']);
});

test('a running run gets the files of a follow-up in its inbox, and no other run can read them', async () => {
  const { runId, runToken } = await service.startExecution();
  const other = await service.startExecution();
  await taskOf(runToken);
  await begin(runToken);
  await service.request('POST', path(runId), { body: { attachments: [file('b.txt', 'B'), file('c.txt', 'C')] } });
  await service.request('POST', path(runId), { body: { message: 'without' } });
  await finish(runToken, { turn: 1, success: true, summary: '' });
  const [first] = await inboxOf(runToken);
  await events(runToken, { seq: 3, occurred_at: at, type: 'follow_up_taken', follow_up_id: first?.id });
  await finish(runToken, { turn: 2, success: true, summary: '' });
  const [second] = await inboxOf(runToken);
  expect(first?.message).toBe('See the attached files.');
  expect(second).not.toHaveProperty('attachments');
  const files = first?.attachments ?? [];
  expect(await Promise.all(files.map((each) => read(runToken, each)))).toEqual(['B', 'C']);
  for (const each of files) {
    await service.problem(404, 'GET', each.path.replace('/api/v1', ''), { key: other.runToken });
  }
});

test('the next execution gets the files of earlier follow-ups, and a rerun gets only the files of the request', async () => {
  const { runId, runToken, executionId } = await service.startExecution({ attachments: [file('a.txt', 'A')] });
  await taskOf(runToken);
  await begin(runToken);
  await service.request('POST', path(runId), { body: { message: 'B', attachments: [file('b.txt', 'B')] } });
  await finish(runToken, { turn: 1, success: true, summary: '' });
  const [item] = await inboxOf(runToken);
  await events(runToken, { seq: 3, occurred_at: at, type: 'follow_up_taken', follow_up_id: item?.id });
  await finish(runToken, { turn: 2, success: false, summary: 'no' });
  await service.deps.db.query(`UPDATE executions SET phase = 'ended' WHERE id = $1`, [executionId]);
  await service.request('POST', path(runId), { body: { message: 'C', attachments: [file('c.txt', 'C')] } });
  const { assignNext } = await import('../../../../test/assign-next.ts');
  const [row] = await service.deps.db.query<{ connection_id: string; pool: string }>(
    'SELECT connection_id, pool FROM executions WHERE id = $1',
    [executionId],
  );
  const slot = {
    connectionId: row?.connection_id ?? '',
    workerId: 'runyard-test',
    workerInstance: 'one',
    pool: row?.pool ?? '',
    teamId: null,
  };
  const next = await assignNext(service.deps.executionDeps, slot);
  if (typeof next === 'string') throw new Error(next);
  const task = await taskOf(next.runToken);
  expect(task.prompt).toBe('C');
  expect(task.attachments.map(({ file_name, earlier }) => [file_name, earlier ?? false])).toEqual([
    ['a.txt', true],
    ['b.txt', true],
    ['c.txt', false],
  ]);
  const again = await service.request<{ run_id: string }>('POST', `/agent/runs/${runId}/rerun`);
  expect(
    await service.deps.db.query('SELECT file_name FROM attachments WHERE run_id = $1', [again.body.run_id]),
  ).toEqual([{ file_name: 'a.txt' }]);
});

test.each([
  ['six files', Array.from({ length: 6 }, (_, n) => file(`${n}.txt`, 'x'))],
  ['no base64', [{ file_name: 'a', mime_type: 'text/plain', data: '*' }]],
  [
    'more than 10 MB',
    [{ file_name: 'a', mime_type: 'text/plain', data: Buffer.alloc(10 * 1024 * 1024 + 1).toString('base64') }],
  ],
  ['no name', [{ file_name: ' ', mime_type: 'text/plain', data: '' }]],
])('a follow-up with %s gets 400, and nothing is stored', async (_name, attachments) => {
  const runId = await service.newRun();
  const before = await blobsNow();
  await service.problem(400, 'POST', path(runId), { body: { message: 'a', attachments } });
  expect(await service.deps.db.query('SELECT id FROM followups WHERE run_id = $1', [runId])).toEqual([]);
  expect(await blobsNow()).toEqual(before);
});

test('a repeated follow-up with the same Idempotency-Key stores its files once, and gets 409 with other files', async () => {
  const runId = await service.newRun();
  const headers = { 'idempotency-key': randomUUIDv7() };
  const before = (await blobsNow()).length;
  const send = (text: string) =>
    service.request('POST', path(runId), { body: { message: 'a', attachments: [large(text)] }, headers });
  expect((await Promise.all([send('A'), send('A'), send('A')])).map(({ status }) => status)).toEqual([200, 200, 200]);
  expect((await send('A')).status).toBe(200);
  expect((await send('B')).status).toBe(409);
  expect((await blobsNow()).length).toBe(before + 1);
});

test('files of follow-ups are deleted with the conversation and with the run', async () => {
  const runId = await service.newRun({ attachments: [{ ...large('A'), file_name: 'a.txt' }] });
  const before = (await blobsNow()).length;
  await service.request('POST', path(runId), { body: { message: 'a', attachments: [large('B'), file('b.txt', 'B')] } });
  const { db, blobs } = service.deps;
  await db.query('UPDATE followups SET execution_id = $1, taken_at = now() WHERE run_id = $1', [runId]);
  await service.request('POST', `/agent/runs/${runId}/cancel`);
  await db.query(`UPDATE runs SET ended_at = now() - interval '91 days' WHERE id = $1`, [runId]);
  const { blobKeys } = await deleteDetail(db);
  for (const key of blobKeys) await blobs.delete(key);
  expect(await db.query('SELECT file_name FROM attachments WHERE run_id = $1', [runId])).toEqual([
    { file_name: 'a.txt' },
  ]);
  expect((await blobsNow()).length).toBe(before);
  await service.request('DELETE', `/agent/runs/${runId}`);
  expect((await blobsNow()).length).toBe(before - 1);
});
