import { randomUUIDv7 } from 'node:crypto';
import type { RunAgentResponse } from '@runyard/contract/runs/run-request';
import type { RunItem } from '@runyard/contract/runs/runs';
import { describe, expect, test } from 'vitest';
import { openTestService } from '../../../../test/service.ts';
import { maxBytesInRow } from '../../../runs/files/attachments/store.ts';

const service = await openTestService();

const rerun = (runId: string, body?: object, headers = {}) =>
  service.request<RunAgentResponse>('POST', `/agent/runs/${runId}/rerun`, {
    headers,
    ...(body === undefined ? {} : { body }),
  });
const read = async (runId: string) => await service.ok<RunItem>('GET', `/agent/runs/${runId}`);
const again = async (runId: string, body?: object) => {
  const answer = await rerun(runId, body);
  expect(answer.status, answer.text).toBe(200);
  return await read(answer.body.run_id);
};

const base64 = (text: string) => Buffer.from(text).toString('base64');
/** This value is too large for its row, so it is stored as a blob. */
const two = 'two '.repeat(maxBytesInRow / 4 + 1);
const attachments = [
  { file_name: 'a.txt', mime_type: 'text/plain', data: base64('one') },
  { file_name: 'b.txt', mime_type: 'text/plain', data: base64(two) },
];
const attachmentsOf = (runId: string) =>
  service.deps.db.query<{
    id: string;
    file_name: string;
    content: Buffer | null;
    blob_key: string | null;
    sha256: Buffer;
  }>('SELECT id, file_name, content, blob_key, sha256 FROM attachments WHERE run_id = $1 ORDER BY position', [runId]);
const bytesOf = async ({ content, blob_key: key }: { content: Buffer | null; blob_key: string | null }) => {
  const blob = key === null ? undefined : await service.deps.blobs.get(key);
  return blob ? Buffer.concat(await blob.stream.toArray()).toString() : content?.toString();
};
const blobCount = async () => {
  let count = 0;
  for await (const _ of service.deps.blobs.list()) count += 1;
  return count;
};

const whole = {
  prompt: 'Build the page\nand test it',
  title: 'A title',
  metadata: { ticket: 'R-1' },
  mode: 'plan',
  config: { name: 'builder', model_id: 'runbook', base_prompt: 'Be brief.', unknown_member: 1 },
};

describe('POST /agent/runs/{runId}/rerun', () => {
  test("creates a new run from the first run's request", async () => {
    const parent = await service.newRun();
    const runId = await service.newRun({ ...whole, parent_run_id: parent });
    const first = await read(runId);
    const answer = await rerun(runId);
    expect(answer).toMatchObject({
      status: 200,
      body: { run_id: answer.body.task_id, state: 'QUEUED', at_capacity: expect.any(Boolean) },
    });
    const second = await read(answer.body.run_id);
    expect(second).toMatchObject({
      prompt: whole.prompt,
      title: 'A title',
      metadata: { ticket: 'R-1' },
      source: 'ORCHESTRATION',
    });
    expect(second.agent_config).toEqual(first.agent_config);
    expect(second.run_id).not.toBe(runId);
    expect(second.conversation_id).not.toBe(first.conversation_id);
    expect(second).toMatchObject({ parent_run_id: parent, rerun_of: runId });
    const [row] = await service.deps.db.query('SELECT mode, name, model_id FROM runs WHERE id = $1', [second.run_id]);
    expect(row).toEqual({ mode: 'plan', name: 'builder', model_id: 'runbook' });
  });

  test('replaces the given members, and takes the title from another prompt', async () => {
    const runId = await service.newRun(whole);
    const other = await again(runId, { prompt: 'Only test it', metadata: { a: 'b' }, config: { name: 'tester' } });
    expect(other).toMatchObject({ prompt: 'Only test it', title: 'Only test it', metadata: { a: 'b' } });
    expect(other.agent_config).toEqual({ name: 'tester' });
    expect(await again(runId, { title: 'Second try' })).toMatchObject({ title: 'Second try', prompt: whole.prompt });
    expect(await again(runId, { metadata: {} })).not.toHaveProperty('metadata.ticket');
    expect(await again(runId, {})).toMatchObject({ title: 'A title' });
  });

  test('copies the attachments, so each of the two runs may be deleted', async () => {
    const runId = await service.newRun({ attachments });
    const second = await again(runId);
    const [before, after] = [await attachmentsOf(runId), await attachmentsOf(second.run_id)];
    expect(after.map(({ file_name, sha256 }) => [file_name, sha256])).toEqual(
      before.map(({ file_name, sha256 }) => [file_name, sha256]),
    );
    await service.request('POST', `/agent/runs/${runId}/cancel`);
    expect((await service.request('DELETE', `/agent/runs/${runId}`)).status).toBe(200);
    expect(await attachmentsOf(runId)).toEqual([]);
    expect(await Promise.all(before.map(bytesOf))).toEqual(['one', undefined]);
    expect(await Promise.all(after.map(bytesOf))).toEqual(['one', two]);
  });

  test('repeats the first answer for a second request with the same Idempotency-Key and body, even if the first run was deleted', async () => {
    const runId = await service.newRun({ attachments });
    const headers = { 'idempotency-key': 'again' };
    const first = await rerun(runId, undefined, headers);
    const blobs = await blobCount();
    expect((await rerun(runId, undefined, headers)).body).toEqual(first.body);
    expect((await rerun(runId, {}, headers)).body).toEqual(first.body);
    expect(await blobCount()).toBe(blobs);
    await service.request('POST', `/agent/runs/${runId}/cancel`);
    await service.request('DELETE', `/agent/runs/${runId}`);
    expect((await rerun(runId, undefined, headers)).body).toEqual(first.body);
  });

  test('creates one run for concurrent requests with one Idempotency-Key, and leaves no copied file', async () => {
    const runId = await service.newRun({ attachments });
    const blobs = await blobCount();
    const answers = await Promise.all(
      Array.from({ length: 5 }, () => rerun(runId, {}, { 'idempotency-key': 'at-once' })),
    );
    expect(new Set(answers.map(({ body }) => body.run_id)).size).toBe(1);
    expect(await blobCount()).toBe(blobs + 1);
  });

  test('answers 409 for an Idempotency-Key with another body, another run or a create', async () => {
    const [one, two] = [await service.newRun(), await service.newRun()];
    const headers = { 'idempotency-key': 'used' };
    await rerun(one, { title: 'a' }, headers);
    for (const answer of [
      await rerun(one, { title: 'b' }, headers),
      await rerun(two, { title: 'a' }, headers),
      await service.request('POST', '/agent/runs', { body: { title: 'a', prompt: 'p' }, headers }),
    ]) {
      expect(answer).toMatchObject({ status: 409, body: { error_code: 'conflict' } });
    }
  });

  test.each([
    ['a blank prompt', { prompt: ' ' }, 'prompt'],
    ['a prompt that is no string', { prompt: 1 }, 'prompt'],
    ['a NUL', { title: '\u0000' }, 'title'],
    ['an unknown model', { config: { model_id: 'nobody/none' } }, 'config.model_id'],
    ['metadata with a wrong key', { metadata: { 'a b': 'c' } }, 'metadata.a b'],
  ])('answers 400 for %s', async (_, body, path) => {
    const runId = await service.newRun();
    const problem = await service.problem(400, 'POST', `/agent/runs/${runId}/rerun`, { body });
    expect(problem.errors?.map((error) => error.path)).toContain(path);
  });

  test('answers 400 and asks for a prompt if the run continued a conversation without a prompt', async () => {
    const first = await service.request<{ conversation_id: string }>('GET', `/agent/runs/${await service.newRun()}`);
    const runId = await service.newRun({ prompt: undefined, conversation_id: first.body.conversation_id });
    const problem = await service.problem(400, 'POST', `/agent/runs/${runId}/rerun`);
    expect(problem.errors?.map((error) => error.path)).toEqual(['prompt']);
    await service.ok('POST', `/agent/runs/${runId}/rerun`, { body: { prompt: 'Anew' } });
  });

  test('answers 403 if the environment of the run was deleted', async () => {
    const body = await service.ok<{ uid: string }>('POST', '/agent/environments', { body: { config: { name: 'E' } } });
    const runId = await service.newRun({ config: { environment_id: body.uid } });
    await service.request('DELETE', `/agent/environments/${body.uid}`);
    const problem = await service.problem(403, 'POST', `/agent/runs/${runId}/rerun`);
    expect(problem.detail).toMatch(/^config\.environment_id: there is no such environment/);
  });

  test('answers 404 for another team and an unknown run', async () => {
    const runId = await service.newRun();
    await service.problem(404, 'POST', `/agent/runs/${runId}/rerun`, { key: service.otherKey });
    await service.problem(404, 'POST', `/agent/runs/${randomUUIDv7()}/rerun`);
    await service.problem(404, 'POST', '/agent/runs/x/rerun');
  });

  test('answers 409 if a file of the run is lost, and creates nothing', async () => {
    const runId = await service.newRun({ attachments });
    const [, second] = await attachmentsOf(runId);
    await service.deps.blobs.delete(second?.blob_key ?? '');
    const before = await blobCount();
    const problem = await service.problem(409, 'POST', `/agent/runs/${runId}/rerun`);
    expect(problem.detail).toContain('lost');
    expect(await blobCount()).toBe(before);
  });
});
