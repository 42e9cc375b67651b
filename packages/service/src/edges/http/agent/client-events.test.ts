/** Tests the route on which workers and agents report steps for the timeline of a run. */
import { randomUUID } from 'node:crypto';
import { maxClientEvents } from '@runyard/contract/agent/client-events';
import type { TimelineEvent } from '@runyard/contract/runs/timeline';
import { expect, test } from 'vitest';
import { openTestService } from '../../../../test/service.ts';

const service = await openTestService();

const eventOf = (more: object = {}) => ({
  event_uuid: randomUUID(),
  event_name: 'setup_worker_image_pull',
  timestamp: '2026-11-21T10:00:03.123456789+02:00',
  payload: {
    start_ts: '2026-11-21T10:00:00Z',
    finish_ts: '2026-11-21T10:00:03Z',
    latency_ms: 3000,
    is_error: false,
  },
  ...more,
});
const report = (runId: string, key: string | null, body: object) =>
  service.request('POST', `/agent/runs/${runId}/client-events`, { key, body });
const stepsOf = async (runId: string) =>
  (await service.request<{ events: TimelineEvent[] }>('GET', `/agent/runs/${runId}/timeline`)).body.events.filter(
    ({ payload }) => payload?.kind === 'client',
  );

test('a step of a worker is in the timeline once, with its duration and its failure', async () => {
  const { runId, runToken } = await service.startExecution();
  const pulled = eventOf({ later: 'member' });
  for (const _ of ['once', 'repeated'])
    expect(await report(runId, runToken, pulled)).toMatchObject({ status: 202, body: {} });
  await report(
    runId,
    runToken,
    eventOf({ event_name: 'unknown', payload: { latency_ms: 5.5, is_error: true, log: 'x' } }),
  );
  await report(runId, runToken, eventOf({ event_name: 'of the agent', payload: undefined }));
  expect(await stepsOf(runId)).toMatchObject([
    {
      event_type: 'setup_step_finished',
      execution_id: 1,
      payload: { name: 'setup_worker_image_pull', duration_ms: 3000, client_event_uuid: pulled.event_uuid },
    },
    { payload: { name: 'unknown', duration_ms: 5.5, error: expect.stringContaining('failed') } },
    { event_type: 'setup_step_progress', payload: { name: 'of the agent' } },
  ]);
});

test('a flood of client events is accepted, and the run keeps a limited number of them', async () => {
  const { runId, runToken, executionId } = await service.startExecution();
  const { db } = service.deps;
  await db.query(
    `INSERT INTO run_events (run_id, seq, event_type, execution_number, payload)
     SELECT $1, 1000 + n, 'setup_step_finished', 1, '{"kind": "client"}' FROM generate_series(1, ${maxClientEvents - 1}) n`,
    [runId],
  );
  await db.query('UPDATE runs SET event_seq = 5000 WHERE id = $1', [runId]);
  const all = await Promise.all(Array.from({ length: 20 }, () => report(runId, runToken, eventOf())));
  expect(all.map(({ status }) => status)).toEqual(Array(20).fill(202));
  expect(await stepsOf(runId)).toHaveLength(maxClientEvents);
  for (const event of [eventOf({ event_name: 'x'.repeat(101) }), eventOf({ payload: { log: 'x'.repeat(20_000) } })])
    expect((await report(runId, runToken, event)).status).toBeGreaterThanOrEqual(400);
  expect(executionId).toBeTypeOf('string');
});

test('secrets in a client event are redacted', async () => {
  const { runId, runToken } = await service.startExecution();
  const [secret = ''] = service.deps.executionDeps.secrets;
  expect(secret).not.toBe('');
  await report(runId, runToken, eventOf({ event_name: runToken, event_uuid: secret }));
  const text = JSON.stringify(await stepsOf(runId));
  expect(text).toContain('redacted');
  expect(text).not.toContain(runToken);
  expect(text).not.toContain(secret);
});

test('only the token of the run itself reports its client events', async () => {
  const { runId, runToken } = await service.startExecution();
  const other = await service.startExecution();
  expect((await report(runId, other.runToken, eventOf())).status, 'a stolen token of another run').toBe(404);
  const agent = await service.newKey({ kind: 'agent' });
  for (const key of [service.key, agent, service.otherKey, `${runToken}x`, null])
    expect((await report(runId, key, eventOf())).status).toBe(401);
  expect(await stepsOf(runId)).toEqual([]);
  await service.deps.db.query("UPDATE executions SET phase = 'ended' WHERE run_id = $1", [runId]);
  expect((await report(runId, runToken, eventOf())).status, 'the execution has ended').toBe(401);
});
