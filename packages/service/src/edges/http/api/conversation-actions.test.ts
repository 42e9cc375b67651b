import { ReportArtifactResponse } from '@runyard/contract/agent/agent-protocol';
import type { RunFollowupResponse } from '@runyard/contract/runs/run-request';
import type { RunItem } from '@runyard/contract/runs/runs';
import { expect, test } from 'vitest';
import { openTestService } from '../../../../test/service.ts';

const service = await openTestService();
const nobody = '01900000-0000-7000-8000-000000000000';
const of = (id: string, action: string) => `/agent/conversations/${id}/${action}`;
const conversationOf = async (runId: string) =>
  (await service.ok<RunItem>('GET', `/agent/runs/${runId}`)).conversation_id ?? '';
const begin = async (key: string) => {
  await service.begin(key);
};
const itemsOf = async (key: string) =>
  (await service.ok<{ items: object[] }>('GET', '/harness-support/inbox', { key })).items;

test('a follow-up to a conversation goes to its latest run, and a repeated request with the same Idempotency-Key sends no second one', async () => {
  const first = await service.startExecution();
  await begin(first.runToken);
  const id = await conversationOf(first.runId);
  await service.request('POST', '/harness-support/finish-task', { key: first.runToken, body: { success: true } });
  const send = async (key: string) => {
    const headers = { 'idempotency-key': key };
    return await service.ok<RunFollowupResponse>('POST', of(id, 'followups'), { body: { message: 'More.' }, headers });
  };
  const toFirst = await send('a');
  expect(toFirst.run_id).toBe(first.runId);
  const second = await service.newRun({ conversation_id: id });
  expect(await send('a')).toEqual(toFirst);
  expect((await send('b')).run_id).toBe(second);
  const repeated = { body: { message: 'Less.' }, headers: { 'idempotency-key': 'b' } };
  await service.problem(409, 'POST', of(id, 'followups'), repeated);
  const attachments = [{ attachment_id: nobody }];
  await service.problem(422, 'POST', of(id, 'followups'), { body: { message: 'a', attachments } });
  await service.problem(404, 'POST', of(nobody, 'followups'), { body: { message: 'a' } });
  await service.problem(404, 'POST', of('no-id', 'followups'), { body: { message: 'a' } });
  await service.problem(404, 'POST', of(id, 'followups'), { key: service.otherKey, body: { message: 'a' } });
});

test('an interrupt of a conversation ends the turn of its latest run', async () => {
  const { runId, runToken } = await service.startExecution();
  const id = await conversationOf(runId);
  await service.problem(400, 'POST', of(id, 'interrupt'));
  await begin(runToken);
  await service.problem(404, 'POST', of(id, 'interrupt'), { key: service.otherKey });
  await service.problem(404, 'POST', of(nobody, 'interrupt'));
  expect(await itemsOf(runToken)).toEqual([]);
  expect(await service.ok('POST', of(id, 'interrupt'))).toEqual({ run_id: runId });
  expect(await itemsOf(runToken)).toEqual([{ type: 'interrupt', turn: 1 }]);
});

test('a conversation downloads the screenshots of its runs, and no other artifact', async () => {
  const { runId, runToken } = await service.startExecution();
  const report = async (artifact_type: string, data: object) => {
    const body = { artifact_type, data };
    const answer = await service.request('POST', '/harness-support/report-artifact', { key: runToken, body });
    const { artifact_uid, upload_url } = ReportArtifactResponse.parse(answer.body);
    const upload = () =>
      service.request('PUT', upload_url ?? '', { key: null, raw: 'png', headers: { 'content-type': 'image/png' } });
    return { uid: artifact_uid, upload };
  };
  const picture = await report('SCREENSHOT', { mime_type: 'image/png' });
  const file = await report('FILE', { filename: 'a.txt', mime_type: 'text/plain' });
  await file.upload();
  const id = await conversationOf(runId);
  const download = (conversation: string, uid: string) => of(conversation, `screenshots/${uid}/download`);
  await service.problem(404, 'GET', download(id, picture.uid));
  await picture.upload();
  const answer = await service.request('GET', download(id, picture.uid));
  expect(answer.status).toBe(302);
  expect((await service.request('GET', answer.headers.get('location') ?? '', { key: null })).text).toBe('png');
  const other = await conversationOf(await service.newRun());
  for (const path of [download(other, picture.uid), download(id, file.uid), download(id, nobody), download(id, 'x')])
    await service.problem(404, 'GET', path);
  await service.problem(404, 'GET', download(id, picture.uid), { key: service.otherKey });
});
