/** Tests the limit of the bytes that a team stores. The limit prevents one team from filling the disk that all teams share. */
import { ReportArtifactResponse } from '@runyard/contract/agent/agent-protocol';
import { UsageReport } from '@runyard/contract/team/budgets';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { openTestService } from '../../../../test/service.ts';
import { foldStorageChanges, recountStorage } from '../../../runs/files/stored-bytes.ts';

const service = await openTestService({ env: { RUNYARD_TEAM_STORAGE_MB: '1' } });
const { db } = service.deps;
const maxBytes = 1024 * 1024;
const spareBytes = maxBytes / 16;
const kb = (count: number) => 'x'.repeat(count * 1024);
const file = (size: number) => ({
  file_name: 'a',
  mime_type: 'text/plain',
  data: Buffer.alloc(size).toString('base64'),
});

type Answer = { readonly detail?: string };
const post = (path: string, body?: unknown, key?: string) => {
  const options = { ...(body === undefined ? {} : { body }), ...(key === undefined ? {} : { key }) };
  return service.request<Answer>('POST', path, options);
};
const create = (files: number[], prompt = 'Do it.') => post('/agent/runs', { prompt, attachments: files.map(file) });
const storage = async (key?: string) => {
  const report = UsageReport.parse((await service.request('GET', '/usage', key ? { key } : {})).body);
  if (!report.storage) throw new Error('the report has no storage');
  return report.storage;
};
const stored = async () => (await storage()).bytes;
/** Fills the storage of the team until `left` bytes are free. */
const fill = async (left: number) =>
  void (await db.query('INSERT INTO storage_changes (team_id, bytes) VALUES ($1, $2)', [
    service.teamId,
    maxBytes - left - (await stored()),
  ]));
/** Resolves when this process has read the stored bytes again. */
const untilKnown = (check: () => Promise<void>) => vi.waitFor(check, { timeout: 60_000, interval: 100 });

async function putArtifact(runToken: string, raw: string) {
  const reported = await post(
    '/harness-support/report-artifact',
    { artifact_type: 'FILE', data: { filename: 'a' } },
    runToken,
  );
  const { upload_url = '' } = ReportArtifactResponse.parse(reported.body);
  return await service.request<Answer>('PUT', upload_url, { key: null, raw });
}
const put = (path: string, runToken: string, raw: string) =>
  service.request<Answer>('PUT', `/harness-support/${path}`, {
    key: runToken,
    raw,
    headers: { 'content-type': 'application/octet-stream' },
  });
const announce = (runToken: string, size_bytes: number) =>
  post(
    '/harness-support/upload-snapshot',
    { turn: 1, files: [{ filename: 'a', mime_type: 'a/b', size_bytes }] },
    runToken,
  );

const expectFull = (answers: readonly { status: number; body: Answer }[]) => {
  for (const { status, body } of answers) {
    expect(status).toBe(413);
    expect(body.detail).toMatch(/The team stores .* and may store 1\.0 MB \(RUNYARD_TEAM_STORAGE_MB\)\. Delete runs/);
  }
};

let seq = 0;
const sendEvents = (runToken: string, bodies: readonly object[]) =>
  post(
    '/harness-support/events',
    { events: bodies.map((body) => ({ seq: ++seq, occurred_at: '2026-01-02T03:04:05Z', ...body })) },
    runToken,
  );

beforeEach(() => {
  seq = 0;
});
afterEach(async () => {
  await db.query('DELETE FROM runs');
  await recountStorage(db);
});

test('the storage of a team includes all bytes of members and agents, without the bytes of a deleted run', async () => {
  expect(await storage()).toEqual({ bytes: 0, max_bytes: maxBytes });
  const run = await service.startExecution({ prompt: 'Do it.', attachments: [file(1000), file(70 * 1024)] });
  const request = await stored();
  expect(request).toBeGreaterThanOrEqual(71 * 1024 + 1000 - 1024);
  const counted = async (least: number, work: () => Promise<{ status: number }>) => {
    const before = await stored();
    expect((await work()).status).toBe(200);
    const added = (await stored()) - before;
    expect(added).toBeGreaterThanOrEqual(least);
    expect(added).toBeLessThan(least + 1000);
    expect(await recountStorage(db)).toMatchObject({ rows: 0 });
  };
  await counted(3000, () => post(`/agent/runs/${run.runId}/followups`, { message: 'go', attachments: [file(3000)] }));
  await counted(5000, () => sendEvents(run.runToken, [{ type: 'transcript', line: JSON.stringify('x'.repeat(5000)) }]));
  await counted(4000, () => putArtifact(run.runToken, 'x'.repeat(4000)));
  await counted(6000, () => put('workspace?turn=1', run.runToken, 'x'.repeat(6000)));
  await counted(0, () => put('workspace?turn=2', run.runToken, 'x'.repeat(6000)));
  await counted(7000, () => put('memory?turn=1', run.runToken, 'x'.repeat(7000)));
  await counted(8000, () => announce(run.runToken, 8000));
  // The next handoff uses the bytes that the unfinished handoff had reserved.
  await counted(0, () => announce(run.runToken, 8000));
  await foldStorageChanges(db);
  expect(await recountStorage(db)).toMatchObject({ rows: 0 });
  expect((await storage(service.otherKey)).bytes).toBe(0);

  await db.query(`UPDATE runs SET state = 'FAILED', ended_at = now(), assignment_id = NULL WHERE id = $1`, [run.runId]);
  await db.query(`UPDATE executions SET phase = 'ended', ended_at = now() WHERE run_id = $1`, [run.runId]);
  expect((await service.request('DELETE', `/agent/runs/${run.runId}`)).status).toBe(200);
  expect(await stored()).toBe(0);
});

test('a recount of the stored bytes corrects a count that differs from the rows', async () => {
  await service.newRun();
  const right = await stored();
  await fill(0);
  await foldStorageChanges(db);
  expect(await recountStorage(db)).toMatchObject({ rows: 1 });
  expect(await stored()).toBe(right);
});

describe('a team without free storage', () => {
  test('stores no files of members who send many small creates, and still starts and answers runs', async () => {
    const schedule = await service.request<{ id: string }>('POST', '/agent/schedules', {
      body: { name: 'a', cron_schedule: '0 0 1 1 *', prompt: kb(100), enabled: false },
    });
    const runId = await service.newRun();
    await untilKnown(async () => expect((await create([1])).status).toBe(200));
    const sent: Awaited<ReturnType<typeof create>>[] = [];
    for (let round = 0; round < 10; round += 1)
      sent.push(...(await Promise.all(Array.from({ length: 4 }, () => create([30 * 1024, 30 * 1024])))));
    expect(new Set(sent.map(({ status }) => status))).toEqual(new Set([200, 413]));
    expectFull(sent.filter(({ status }) => status !== 200));
    // The service's count may lag behind by the creates of one round, so the stored bytes may exceed the limit by the size of these four creates.
    expect(await stored()).toBeLessThanOrEqual(maxBytes + 4 * 61 * 1024);
    // Refused creates have released the bytes that they had reserved, so one more create may still be accepted before the storage is full.
    await untilKnown(async () => expectFull([await create([30 * 1024, 30 * 1024])]));
    await untilKnown(async () =>
      expectFull([
        await create([], kb(100)),
        await post(`/agent/runs/${runId}/followups`, { message: 'go', attachments: [file(100 * 1024)] }),
        await post(`/agent/schedules/${schedule.body.id}/run`),
      ]),
    );
    // Set the free storage to 1,024 bytes, because the creates above may also have used the bytes that are reserved for short texts.
    await fill(1024);
    await untilKnown(async () => expect((await create([])).status).toBe(200));
    expect((await post(`/agent/runs/${runId}/followups`, { message: 'go' })).status).toBe(200);
    // When the rest of the storage is used, short texts are also refused.
    await fill(-spareBytes);
    await untilKnown(async () => expectFull([await create([])]));
    // Deleted runs free storage.
    await db.query('DELETE FROM runs WHERE id <> $1', [runId]);
    await recountStorage(db);
    await untilKnown(async () => expect((await create([30 * 1024])).status).toBe(200));
  });

  test('stores no files of agents, and replaces archives', async () => {
    const run = await service.startExecution();
    expect((await put('workspace?turn=1', run.runToken, kb(300))).status).toBe(200);
    await fill(10 * 1024);
    await untilKnown(async () => expectFull([await announce(run.runToken, 20 * 1024)]));
    await fill(10 * 1024);
    expectFull([await putArtifact(run.runToken, kb(20)), await put('workspace?turn=2', run.runToken, kb(320))]);
    expect((await put('workspace?turn=2', run.runToken, kb(300))).status).toBe(200);
    // The memory of a harness counts against the limit for texts, which is higher than the limit for files.
    expect((await put('memory?turn=1', run.runToken, kb(20))).status).toBe(200);
    expectFull([await put('memory?turn=2', run.runToken, kb(100))]);
  });

  test('cuts the conversation of an agent that writes without end, reports the cut, and lets the run end', async () => {
    const run = await service.startExecution();
    await fill(100 * 1024);
    await untilKnown(async () => expectFull([await announce(run.runToken, 200 * 1024)]));
    // An announcement that was accepted before then has reserved bytes.
    await fill(100 * 1024);
    await sendEvents(run.runToken, [
      { type: 'agent_started', harness: 'oz', model_id: 'runbook' },
      { type: 'turn_started', step_id: 's', prompt: 'Do it.' },
    ]);
    for (let round = 0; round < 20; round += 1) {
      const text = { type: 'text', step_id: 's', message_id: 'm', role: 'assistant', text: kb(8) };
      const answer = await sendEvents(run.runToken, [text, { type: 'transcript', line: JSON.stringify(kb(8)) }]);
      expect(answer.status).toBe(200);
    }
    expect(await stored()).toBeLessThanOrEqual(maxBytes + 4096);
    const { text } = await service.request('GET', `/agent/runs/${run.runId}/timeline`);
    expect(text.split('RUNYARD_TEAM_STORAGE_MB')).toHaveLength(3);
    await sendEvents(run.runToken, [{ type: 'turn_finished', step_id: 's', stop_reason: 'end_turn' }]);
    const conversation = await service.request('GET', `/agent/runs/${run.runId}/conversation`);
    expect(conversation.text).toContain('All that the team stores has reached 1 MB');

    // The service stores events such as `turn_started` even above the limit, but only up to a second, higher limit.
    for (let round = 0; round < 10; round += 1) {
      const turns = Array.from({ length: 10 }, (_, n) => ({
        type: 'turn_started',
        step_id: `${round}-${n}`,
        prompt: kb(4),
      }));
      expect((await sendEvents(run.runToken, turns)).status).toBe(200);
    }
    expect(await stored()).toBeLessThanOrEqual(maxBytes + spareBytes + 4096);
    expect(await recountStorage(db)).toMatchObject({ rows: 1 });
  });
});

test('a file that is uploaded before its follow-up counts against the storage of the team', async () => {
  const runId = await service.newRun();
  await fill(10);
  await untilKnown(async () => {
    const files = [{ filename: 'a', mime_type: 'text/plain' }];
    const prepared = await service.request<{ attachments: { upload_url: string }[] }>(
      'POST',
      `/agent/runs/${runId}/attachments/prepare`,
      { body: { files } },
    );
    const url = prepared.body.attachments[0]?.upload_url ?? '';
    const answer = await service.request<Answer>('PUT', url, { key: null, raw: 'x'.repeat(20) });
    expect([answer.status, answer.body.detail]).toEqual([413, expect.stringContaining('RUNYARD_TEAM_STORAGE_MB')]);
  });
});
