import { randomUUIDv7 } from 'node:crypto';
import { expect, test } from 'vitest';
import { openTestService } from '../../../../test/service.ts';

const service = await openTestService();

const ask = async (path: string) => await service.ok<Record<string, string>>('GET', path, { key: null });
const fromSession = (id: string) => ask(`/agent/sessions/${id}/redirect`);
const fromConversation = (id: string) => ask(`/agent/conversations/${id}/redirect`);

const speak = (runToken: string) =>
  service.report(runToken, [
    {
      type: 'turn_started',
      seq: 1,
      occurred_at: '2026-11-21T10:00:00Z',
      turn: 1,
      step_id: 's',
      prompt: 'Do it',
    },
  ]);
const sessionOf = async (runId: string) =>
  (await service.ok<{ session_id: string }>('GET', `/agent/runs/${runId}`)).session_id;
const end = (runId: string) =>
  service.deps.db.query(`UPDATE executions SET phase = 'ended', ended_at = now() WHERE run_id = $1`, [runId]);

test('the URL of a conversation redirects to its live session, and the URL of an ended session to its conversation', async () => {
  const { runId, runToken, conversationId } = await service.startExecution();
  const session = await sessionOf(runId);
  expect((await speak(runToken)).status).toBe(200);
  expect(await fromSession(session)).toEqual({});
  expect(await fromConversation(conversationId)).toEqual({ session_id: session });
  await end(runId);
  expect(await fromSession(session)).toEqual({ conversation_id: conversationId });
  expect(await fromConversation(conversationId)).toEqual({});
});

test('the URL of a conversation that several runs continue redirects to the live run', async () => {
  const first = await service.startExecution();
  const second = await service.startExecution({ conversation_id: first.conversationId });
  expect(await fromConversation(first.conversationId)).toEqual({ session_id: await sessionOf(second.runId) });
  await end(second.runId);
  expect(await fromConversation(first.conversationId)).toEqual({ session_id: await sessionOf(first.runId) });
});

test('the URL of a conversation gives 404 before its run has begun, and after the run ended without messages', async () => {
  const waiting = await service.newRun();
  expect(await fromSession(await sessionOf(waiting))).toEqual({});
  const silent = await service.startExecution();
  await end(silent.runId);
  expect(await fromSession(await sessionOf(silent.runId))).toEqual({});
});

test.each(['sessions', 'conversations'])('the URLs of unknown %s give 404', async (things) => {
  for (const id of [randomUUIDv7(), 'x', '%00']) {
    await service.problem(404, 'GET', `/agent/${things}/${id}/redirect`, { key: null });
  }
});

test('redirects and runs never show the execution id, because workers use this id', async () => {
  const { runId, executionId, runToken, conversationId } = await service.startExecution();
  expect((await speak(runToken)).status).toBe(200);
  const { session_id: session = '' } = await fromConversation(conversationId);
  expect(session).not.toBe(executionId);
  await service.problem(404, 'GET', `/agent/sessions/${executionId}/redirect`, { key: null });
  const run = await service.request('GET', `/agent/runs/${runId}`);
  expect(run.text, 'nor does a run show it').not.toContain(executionId);
  await end(runId);
  const { conversation_id: conversation = '' } = await fromSession(session);
  for (const id of [session, conversation]) {
    for (const path of [`/agent/runs/${id}`, `/agent/conversations/${id}`, `/agent/runs/${id}/events`]) {
      await service.problem(404, 'GET', path, { key: service.otherKey });
      await service.problem(401, 'GET', path, { key: null });
      await service.problem(401, 'GET', path, { key: id });
    }
  }
});
