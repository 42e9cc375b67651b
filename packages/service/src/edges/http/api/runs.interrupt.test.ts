import type { RunItem } from '@runyard/contract/runs/runs';
import { expect, test } from 'vitest';
import { openTestService } from '../../../../test/service.ts';

const service = await openTestService();

const path = (runId: string) => `/agent/runs/${runId}/interrupt`;
const interrupted = async (key: string) =>
  (await service.ok<{ items: object[] }>('GET', '/harness-support/inbox', { key })).items;
const begin = async (key: string) => {
  const event = {
    seq: 1,
    occurred_at: '2026-01-02T03:04:05.000Z',
    type: 'agent_started',
    harness: 'oz',
    model_id: 'runbook',
  };
  await service.report(key, [event]);
};

test('an interrupt gets 200 during a turn, and the agent gets the number of the turn to end', async () => {
  const { runId, runToken } = await service.startExecution();
  await begin(runToken);
  const answer = await service.request('POST', path(runId));
  expect([answer.status, answer.body]).toEqual([200, {}]);
  expect(await interrupted(runToken)).toEqual([{ type: 'interrupt', turn: 1 }]);
});

test('an interrupt gets 400 before the start and after the end of a turn', async () => {
  const queued = await service.newRun();
  await service.problem(400, 'POST', path(queued));
  const { runId, runToken } = await service.startExecution();
  await service.problem(400, 'POST', path(runId));
  await begin(runToken);
  await service.request('POST', '/harness-support/finish-task', {
    key: runToken,
    body: { success: true, summary: '' },
  });
  await service.problem(400, 'POST', path(runId));
});

test('an interrupt that arrives after the end of its turn does not end the next turn', async () => {
  const { runId, runToken } = await service.startExecution();
  await begin(runToken);
  await service.request('POST', path(runId));
  await service.request('POST', `/agent/runs/${runId}/followups`, { body: { message: 'And then?' } });
  await service.request('POST', '/harness-support/finish-task', {
    key: runToken,
    body: { turn: 1, success: true, summary: '' },
  });
  expect(await interrupted(runToken)).toEqual([expect.objectContaining({ type: 'follow_up', message: 'And then?' })]);
});

test('an interrupted run shows until when it waits for a message, and a cancel ends its sandbox', async () => {
  const { runId, runToken } = await service.startExecution();
  const message = async () => (await service.ok<RunItem>('GET', `/agent/runs/${runId}`)).status_message?.message;
  await begin(runToken);
  await service.request('POST', path(runId));
  const report = { turn: 1, interrupted: true, success: true, summary: '' };
  await service.request('POST', '/harness-support/finish-task', { key: runToken, body: report });
  expect(await message()).toMatch(
    /^The turn was interrupted\. The agent waits in its sandbox for a message until 20[-\dT:]+Z\. Send a message, or cancel the run to end the sandbox\.$/,
  );
  await service.problem(404, 'POST', `/agent/runs/${runId}/cancel`, { key: service.otherKey });
  const cancelled = await service.request('POST', `/agent/runs/${runId}/cancel`);
  expect([cancelled.status, cancelled.body]).toEqual([200, runId]);
  expect(await interrupted(runToken)).toEqual([{ type: 'leave' }]);
  expect(await message()).toBeUndefined();
  await service.problem(400, 'POST', `/agent/runs/${runId}/cancel`);
});

test('the message of an interrupted self-hosted run does not advise to cancel the run, because a cancel gets 422', async () => {
  const { runId, runToken } = await service.startExecution({ config: { worker_host: 'box' } });
  await begin(runToken);
  await service.request('POST', path(runId));
  const report = { turn: 1, interrupted: true, success: true, summary: '' };
  await service.request('POST', '/harness-support/finish-task', { key: runToken, body: report });
  const { status_message } = await service.ok<RunItem>('GET', `/agent/runs/${runId}`);
  expect(status_message?.message).toMatch(/for a message until 20[-\dT:]+Z\. Send a message\.$/);
  await service.problem(422, 'POST', `/agent/runs/${runId}/cancel`);
});

test('a run whose turn ended without an interrupt shows no wait, and a cancel does not end its sandbox', async () => {
  const { runId, runToken } = await service.startExecution();
  await begin(runToken);
  await service.request('POST', path(runId));
  const report = { turn: 1, success: true, summary: '' };
  await service.request('POST', '/harness-support/finish-task', { key: runToken, body: report });
  expect((await service.ok<RunItem>('GET', `/agent/runs/${runId}`)).status_message).toBeUndefined();
  await service.problem(400, 'POST', `/agent/runs/${runId}/cancel`);
  expect(await interrupted(runToken)).toEqual([]);
});

test('an interrupt from another team gets 404 and ends no turn', async () => {
  const { runId, runToken } = await service.startExecution();
  await begin(runToken);
  await service.problem(404, 'POST', path(runId), { key: service.otherKey });
  expect(await interrupted(runToken)).toEqual([]);
});
