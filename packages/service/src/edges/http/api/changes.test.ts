import { randomBytes } from 'node:crypto';
import type { AgentInbox } from '@runyard/contract/agent/agent-protocol';
import { type ReportChanges, RunChanges } from '@runyard/contract/runs/changes';
import { expect, test } from 'vitest';
import { openTestService } from '../../../../test/service.ts';

const service = await openTestService();
const { db } = service.deps;

const pathOf = (runId: string) => `/agent/runs/${runId}/changes`;
const read = async (runId: string) => RunChanges.parse((await service.request('GET', pathOf(runId))).body);
const report = (key: string, body: unknown) => service.request('POST', '/harness-support/changes', { key, body });
const inbox = async (key: string, query = '&changes=0') =>
  (await service.request<AgentInbox>('GET', `/harness-support/inbox?wait_ms=0${query}`, { key })).body.items;

const changes: ReportChanges = {
  repositories: [
    {
      path: 'site',
      base_commit: 'a'.repeat(40),
      branch: 'fix',
      files: [
        { path: 'a\u202e<b>\n.txt', status: 'added', additions: 1, deletions: 0, patch: '@@ -0,0 +1 @@\n+</script>\n' },
        { path: 'b.bin', status: 'modified', binary: true },
      ],
    },
  ],
};

/** Starts a run whose agent works in a turn. */
async function startWork() {
  const execution = await service.startExecution();
  const events = [
    { seq: 1, occurred_at: '2026-11-21T10:00:00Z', type: 'agent_started', harness: 'oz', model_id: 'runbook' },
  ];
  await service.request('POST', '/harness-support/events', { key: execution.runToken, body: { events } });
  return execution;
}

test('the changes of a run are the changes that its sandbox reported last, with the time of the report', async () => {
  const { runId, runToken } = await startWork();
  expect(await read(runId)).toEqual({ is_live: true, repositories: [] });
  expect((await report(runToken, { repositories: [] })).status).toBe(200);
  expect((await report(runToken, changes)).status).toBe(200);
  const live = await read(runId);
  expect(live).toEqual({ as_of: expect.any(String), is_live: true, ...changes });
  expect(Date.now() - Date.parse(live.as_of ?? '')).toBeLessThan(30_000);
  await service.request('POST', `/agent/runs/${runId}/cancel`);
  expect(await read(runId)).toEqual({ ...live, is_live: false });
});

test('reads ask a working agent for its changes at most once in five seconds, and never ask an agent that cannot report changes', async () => {
  const { runId, runToken } = await startWork();
  expect(await inbox(runToken)).toEqual([]);
  await Promise.all([read(runId), read(runId), read(runId)]);
  expect(await inbox(runToken)).toEqual([{ type: 'changes', asked: 1 }]);
  expect(await inbox(runToken, '&changes=1')).toEqual([]);
  expect(await inbox(runToken, '')).toEqual([]);
  const waiting = service.request<AgentInbox>('GET', '/harness-support/inbox?wait_ms=20000&changes=1', {
    key: runToken,
  });
  await db.query(`UPDATE run_changes SET asked_at = asked_at - interval '6 seconds' WHERE run_id = $1`, [runId]);
  await read(runId);
  expect((await waiting).body.items).toEqual([{ type: 'changes', asked: 2 }]);
  await db.query(`UPDATE run_changes SET asked_at = asked_at - interval '2 minutes' WHERE run_id = $1`, [runId]);
  expect(await inbox(runToken)).toEqual([]);
});

test('a read does not ask the agent of a waiting run', async () => {
  const runId = await service.newRun();
  expect(await read(runId)).toEqual({ is_live: false, repositories: [] });
  expect(await db.query('SELECT FROM run_changes WHERE run_id = $1', [runId])).toEqual([]);
});

test('secrets of the run are removed from names and patches', async () => {
  const { runId, runToken } = await startWork();
  const files = [
    { path: `of ${runToken}`, status: 'added', additions: 1, deletions: 0, patch: `@@ -0,0 +1 @@\n+${runToken}\n` },
  ];
  await report(runToken, { repositories: [{ path: '', files }] });
  const { text } = await service.request('GET', pathOf(runId));
  expect(text).not.toContain(runToken);
  expect(text).toContain('redacted');
});

test('a report above a size limit gets 400, and a report that exceeds the storage of the team gets 413', async () => {
  const { runId, runToken } = await startWork();
  const file = { path: 'a', status: 'added', additions: 1, deletions: 0 };
  for (const files of [
    Array(1001).fill(file),
    [{ ...file, patch: 'x'.repeat(128 * 1024 + 1) }],
    [{ ...file, status: 'x' }],
  ])
    expect((await report(runToken, { repositories: [{ path: '', files }] })).status).toBe(400);
  const { limits } = service.deps.executionDeps;
  const whole = limits.teamBytes;
  Object.assign(limits, { teamBytes: 100 });
  const files = [{ ...file, patch: randomBytes(1000).toString('hex') }];
  expect((await report(runToken, { repositories: [{ path: '', files }] })).status).toBe(413);
  Object.assign(limits, { teamBytes: whole });
  expect((await read(runId)).repositories).toEqual([]);
});

test('the changes count as stored bytes of the team until the run is deleted', async () => {
  const stored = async () => {
    const [row] = await db.query<{ bytes: string }>(
      `SELECT coalesce((SELECT bytes FROM team_storage WHERE team_id = $1), 0) + coalesce((SELECT sum(bytes) FROM storage_changes WHERE team_id = $1), 0) AS bytes`,
      [service.teamId],
    );
    return Number(row?.bytes);
  };
  const before = await stored();
  const { runId, runToken } = await startWork();
  await report(runToken, changes);
  const withOne = await stored();
  await report(runToken, { repositories: [{ path: randomBytes(500).toString('hex'), files: [] }] });
  expect((await stored()) - withOne).toBeGreaterThan(300);
  const [row] = await db.query<{ wrong: number }>('SELECT recount_team_storage() AS wrong');
  expect(Number(row?.wrong)).toBe(0);
  await service.request('POST', `/agent/runs/${runId}/cancel`);
  await db.query('DELETE FROM runs WHERE id = $1', [runId]);
  expect(await stored()).toBe(before);
});

test('viewers of the team can read the changes of a run, and another team cannot', async () => {
  const { runId, runToken } = await startWork();
  await report(runToken, changes);
  const viewer = await service.newKey({ role: 'viewer' });
  expect((await service.request('GET', pathOf(runId), { key: viewer })).status).toBe(200);
  await service.problem(404, 'GET', pathOf(runId), { key: service.otherKey });
  await service.problem(404, 'GET', pathOf('x'));
});
