import { Readable } from 'node:stream';
import { describe, expect, test, vi } from 'vitest';
import { openTestService } from '../../../../test/service.ts';
import { makeTranscriptComposer } from '../../../runs/executions/compose-transcripts.ts';
import { endSandbox } from '../../../runs/executions/reconcile/sandbox-end.ts';
import { maxBytesInRow } from '../../../runs/files/attachments/store.ts';

const service = await openTestService();

const blobKeys = async () => {
  const keys = [];
  for await (const { key } of service.deps.blobs.list()) keys.push(key);
  return keys.sort();
};

/** The first file is stored in its row, the second as a blob. */
const attachments = [1, maxBytesInRow + 1].map((size) => ({
  file_name: `${size}.txt`,
  mime_type: 'text/plain',
  data: Buffer.alloc(size, 'a').toString('base64'),
}));

/** Creates an ended run that has no sandbox, but a message, an artifact and an attachment. */
async function endedRun(body: Record<string, unknown> = {}) {
  const execution = await service.startExecution({ attachments, ...body });
  const { executionId, runToken } = execution;
  const events = [
    { type: 'agent_started', harness: 'oz', model_id: 'runbook' },
    { type: 'turn_started', step_id: 's', prompt: 'Do it' },
    { type: 'transcript', line: '{"a":1}' },
  ].map((event, index) => ({ ...event, seq: index + 1, occurred_at: '2026-11-21T10:00:00Z' }));
  await service.report(runToken, events);
  const reported = await service.ok<{ artifact_uid: string; upload_url: string }>(
    'POST',
    '/harness-support/report-artifact',
    { key: runToken, body: { artifact_type: 'FILE', data: { filename: 'a.txt' } } },
  );
  await service.request('PUT', reported.upload_url, { key: null, raw: 'made' });
  await service.ok('POST', '/harness-support/finish-task', { key: runToken, body: { success: true, summary: '' } });
  await service.deps.db.query(`UPDATE executions SET phase = 'ended', ended_at = now() WHERE id = $1`, [executionId]);
  await makeTranscriptComposer(service.deps)();
  return { ...execution, artifactUid: reported.artifact_uid };
}

/** Stores the files of a skill for a run. */
async function storeSkill(runId: string): Promise<void> {
  const { db, blobs } = service.deps;
  await blobs.put(`skills/${runId}`, Readable.from([Buffer.from('{}')]), { maxBytes: 10 });
  await db.query(
    `INSERT INTO run_skills (id, run_id, position, name, description, owner, repo, path, commit_id, blob_key)
     VALUES ($1, $1, 0, 's', '', 'o', 'r', 'SKILL.md', $2, $3)`,
    [runId, '0'.repeat(40), `skills/${runId}`],
  );
}

const remaining = async (runId: string, executionId: string) => {
  const counts = await service.deps.db.query<{ table: string; rows: number }>(
    `SELECT 'runs' AS table, count(*)::int AS rows FROM runs WHERE id = $1
     UNION ALL SELECT 'executions', count(*)::int FROM executions WHERE run_id = $1
     UNION ALL SELECT 'run_events', count(*)::int FROM run_events WHERE run_id = $1
     UNION ALL SELECT 'conversation_events', count(*)::int FROM conversation_events WHERE run_id = $1
     UNION ALL SELECT 'attachments', count(*)::int FROM attachments WHERE run_id = $1
     UNION ALL SELECT 'artifacts', count(*)::int FROM artifacts WHERE run_id = $1
     UNION ALL SELECT 'model_requests', count(*)::int FROM model_requests WHERE run_id = $1
     UNION ALL SELECT 'transcript_chunks', count(*)::int FROM transcript_chunks WHERE execution_id = $2`,
    [runId, executionId],
  );
  return counts.filter(({ rows }) => rows > 0).map(({ table }) => table);
};

describe('DELETE /agent/runs/{runId}', () => {
  test('deletes an ended run with its rows and blobs, and closes its streams and URLs', async () => {
    const before = await blobKeys();
    const { runId, executionId, artifactUid, conversationId } = await endedRun();
    await storeSkill(runId);
    expect((await blobKeys()).length - before.length).toBe(4);
    expect(await remaining(runId, executionId)).toEqual(
      expect.arrayContaining(['runs', 'conversation_events', 'attachments', 'artifacts']),
    );
    const location = async (path: string) => (await service.request('GET', path)).headers.get('location') ?? '';
    const transcript = await location(`/agent/runs/${runId}/transcript`);
    const artifact = await location(`/agent/artifacts/${artifactUid}/download`);
    expect((await service.request('GET', transcript, { key: null })).text).toBe('{"a":1}\n');

    const answer = await service.request('DELETE', `/agent/runs/${runId}`);
    expect([answer.status, answer.body]).toEqual([200, { success: true }]);
    expect(await remaining(runId, executionId)).toEqual([]);
    expect(await blobKeys()).toEqual(before);
    for (const url of [transcript, artifact]) await service.problem(404, 'GET', url, { key: null });
    for (const path of ['', '/timeline', '/conversation', '/transcript', '/events']) {
      await service.problem(404, 'GET', `/agent/runs/${runId}${path}`);
    }
    await service.problem(404, 'GET', `/agent/conversations/${conversationId}`);
    await service.problem(404, 'DELETE', `/agent/runs/${runId}`);
  });

  test('keeps the children of the run', async () => {
    const { runId } = await endedRun();
    const child = await service.newRun({ parent_run_id: runId });
    expect((await service.request('DELETE', `/agent/runs/${runId}`)).status).toBe(200);
    const { status, body } = await service.request<{ parent_run_id?: string }>('GET', `/agent/runs/${child}`);
    expect([status, body.parent_run_id]).toEqual([200, undefined]);
  });

  test('answers 409 with a remedy for a run that has not ended', async () => {
    const queued = await service.newRun();
    const { runId: claimed } = await service.startExecution();
    for (const [runId, state] of [
      [queued, 'QUEUED'],
      [claimed, 'CLAIMED'],
    ]) {
      const problem = await service.problem(409, 'DELETE', `/agent/runs/${runId}`);
      expect(problem).toMatchObject({ error_code: 'conflict', detail: expect.stringContaining(`${state}. Cancel it`) });
      expect((await service.request('GET', `/agent/runs/${runId}`)).status).toBe(200);
    }
    const selfHosted = await service.newRun({ config: { worker_host: 'my-box' } });
    const { detail } = await service.problem(409, 'DELETE', `/agent/runs/${selfHosted}`);
    expect(detail).toBe('The run is QUEUED. Wait for its end, then delete it.');
    await service.request('POST', `/agent/runs/${queued}/cancel`);
    expect((await service.request('DELETE', `/agent/runs/${queued}`)).status).toBe(200);
  });

  test('answers 409 while the sandbox of a cancelled run is stopping', async () => {
    const { runId, executionId } = await service.startExecution();
    await service.request('POST', `/agent/runs/${runId}/cancel`);
    const answer = await service.request('DELETE', `/agent/runs/${runId}`);
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([409, '5']);
    await service.deps.db.query(`UPDATE executions SET phase = 'ended' WHERE id = $1`, [executionId]);
    expect((await service.request('DELETE', `/agent/runs/${runId}`)).status).toBe(200);
  });

  test('ends a sandbox that waits for a follow-up, and deletes the run afterwards', async () => {
    const { runId, executionId } = await service.startExecution();
    const phase = async () =>
      (await service.deps.db.query<{ phase: string }>('SELECT phase FROM executions WHERE id = $1', [executionId]))[0]
        ?.phase;
    await service.deps.db.query(
      `UPDATE executions SET phase = 'idle', idle_until = now() + interval '1 hour' WHERE id = $1`,
      [executionId],
    );
    await service.deps.db.query(`UPDATE runs SET state = 'SUCCEEDED', ended_at = now() WHERE id = $1`, [runId]);
    const deletion = service.request('DELETE', `/agent/runs/${runId}`);
    await vi.waitFor(async () => expect(await phase()).toBe('stopping'), { timeout: 60_000 });
    await endSandbox(service.deps.executionDeps, executionId, { kind: 'exited', message: 'It left.' });
    expect((await deletion).status).toBe(200);
    expect(await remaining(runId, executionId)).toEqual([]);
  });

  test('answers 404 for another team, and the run stays', async () => {
    const { runId } = await endedRun();
    await service.problem(404, 'DELETE', `/agent/runs/${runId}`, { key: service.otherKey });
    expect((await service.request('GET', `/agent/runs/${runId}`)).status).toBe(200);
  });

  test('succeeds once for concurrent requests', async () => {
    const { runId } = await endedRun();
    const answers = await Promise.all(
      Array.from({ length: 4 }, () => service.request('DELETE', `/agent/runs/${runId}`)),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 404, 404, 404]);
  });
});
