import { type ClientRequest, get, type IncomingMessage } from 'node:http';
import { ConversationResponse } from '@runyard/contract/runs/conversations';
import type { ListRunsResponse, RunItem } from '@runyard/contract/runs/runs';
import { describe, expect, test } from 'vitest';
import { openTestService } from '../../../../test/service.ts';
import { makeTranscriptComposer } from '../../../runs/executions/compose-transcripts.ts';

const service = await openTestService();

const at = '2026-11-21T10:00:00Z';

async function report(runToken: string, events: Record<string, unknown>[]): Promise<void> {
  await service.ok('POST', '/harness-support/events', {
    key: runToken,
    body: { events: events.map((event, index) => ({ seq: index + 1, occurred_at: at, ...event })) },
  });
}

const story = [
  { type: 'agent_started', harness: 'oz', model_id: 'runbook' },
  { type: 'turn_started', step_id: 's1', prompt: 'Do it' },
  { type: 'transcript', line: '{"line":1}' },
  { type: 'text', step_id: 's1', message_id: 'm1', role: 'assistant', text: 'Work' },
  { type: 'text', step_id: 's1', message_id: 'm1', role: 'assistant', text: 'ing' },
  { type: 'action', step_id: 's1', action_id: 'a1', category: 'command', name: 'shell', input: { command: 'ls' } },
  { type: 'action_output', action_id: 'a1', text: 'one\n' },
  { type: 'action_result', action_id: 'a1', state: 'completed', exit_code: 0 },
  { type: 'transcript', line: '{"line":2}' },
  { type: 'turn_finished', step_id: 's1', summary: 'Done' },
];

const runWithStory = async () => {
  const execution = await service.startExecution();
  await report(execution.runToken, story);
  return execution;
};

describe('the conversation of a run', () => {
  test('answers 200 with messages and actions', async () => {
    const { runId, conversationId } = await runWithStory();
    const answer = await service.request('GET', `/agent/runs/${runId}/conversation`);
    const conversation = ConversationResponse.parse(answer.body);
    expect(conversation.conversation_id).toBe(conversationId);
    expect(conversation.steps).toMatchObject([
      {
        id: 's1',
        summary: 'Done',
        messages: [
          { role: 'user', content: [{ type: 'text', text: 'Do it' }] },
          { role: 'assistant', content: [{ type: 'text', text: 'Working' }], message_ids: ['m1'] },
          { role: 'assistant', content: [{ type: 'action', id: 'a1', name: 'shell', input: { command: 'ls' } }] },
          {
            role: 'tool',
            content: [
              {
                type: 'action_result',
                action_id: 'a1',
                state: 'completed',
                output: { text: 'one\n', exit_code: 0 },
              },
            ],
          },
        ],
      },
    ]);
    const byConversation = await service.request('GET', `/agent/conversations/${conversationId}`);
    expect(byConversation.body).toEqual(answer.body);
  });

  test('contains the input of an action that is a long list', async () => {
    const { runId, runToken } = await service.startExecution();
    const [begun = {}, turn = {}] = story;
    const input = { numbers: Array(25_000).fill(1) };
    await report(runToken, [
      begun,
      turn,
      { type: 'action', step_id: 's1', action_id: 'a1', category: 'command', name: 'x', input },
    ]);
    const body = await service.ok<ConversationResponse>('GET', `/agent/runs/${runId}/conversation`);
    expect(body.steps[0]?.messages[1]?.content).toMatchObject([{ type: 'action', input }]);
  });

  test('answers 404 for a run without messages, with the reason why the run waits', async () => {
    const detailOf = async (path: string) => (await service.problem(404, 'GET', path)).detail;
    const itemOf = async (runId: string) => await service.ok<RunItem>('GET', `/agent/runs/${runId}`);
    const { runId, runToken, conversationId } = await service.startExecution();
    const claimed = 'The worker runyard-test starts the sandbox.';
    expect(await detailOf(`/agent/runs/${runId}/conversation`)).toBe(`The run has no conversation yet. ${claimed}`);
    expect(await detailOf(`/agent/runs/${runId}/transcript`)).toBe(`The run has no transcript yet. ${claimed}`);
    expect(await detailOf(`/agent/conversations/${conversationId}`)).toContain(claimed);
    expect((await itemOf(runId)).status_message).toEqual({ message: claimed });

    const elsewhere = await service.newRun({ config: { worker_host: 'build-machine' } });
    const missing = (await itemOf(elsewhere)).status_message?.message;
    expect(missing).toContain('no worker with the name build-machine is connected');
    expect(await detailOf(`/agent/runs/${elsewhere}/conversation`)).toBe(`The run has no conversation yet. ${missing}`);
    const body = await service.ok<ListRunsResponse>('GET', '/agent/runs?state=QUEUED');
    expect(body.runs.find(({ run_id }) => run_id === elsewhere)?.status_message?.message).toBe(missing);

    await report(runToken, story.slice(0, 1));
    expect(await detailOf(`/agent/runs/${runId}/conversation`)).toContain('has begun but has sent no message yet');
    await service.request('POST', `/agent/runs/${runId}/cancel`);
    expect(await detailOf(`/agent/runs/${runId}/conversation`)).toContain('ended as CANCELLED before its agent said');
  });

  test('shows the exit code and duration of a command', async () => {
    const { runId, runToken } = await service.startExecution();
    const [begun = {}, turn = {}, , , , action = {}] = story;
    const result = { type: 'action_result', action_id: 'a1', state: 'failed', exit_code: 2, duration_ms: 34 };
    await report(runToken, [begun, turn, action, result]);
    const body = await service.ok<ConversationResponse>('GET', `/agent/runs/${runId}/conversation`);
    expect(ConversationResponse.parse(body).steps[0]?.messages.at(-1)?.content).toMatchObject([
      { type: 'action_result', state: 'failed', output: { text: '', exit_code: 2, duration_ms: 34 } },
    ]);
  });

  test('spans the runs that continue it', async () => {
    const { conversationId } = await runWithStory();
    const next = await service.startExecution({ conversation_id: conversationId });
    await report(next.runToken, [story[0] ?? {}, { type: 'turn_started', step_id: 's2', prompt: 'More' }]);
    const body = await service.ok<ConversationResponse>('GET', `/agent/conversations/${conversationId}`);
    expect(body.steps.map((step) => step.id)).toEqual(['s1', 's2']);
  });
});

test("a team's concurrent reads of long conversations are limited: some reads wait, further reads get 429", async () => {
  const { runId, conversationId } = await service.startExecution();
  const { db } = service.deps;
  await db.query(
    `INSERT INTO conversation_events (run_id, seq, execution_id, event)
     SELECT id, n, current_execution_id, jsonb_build_object('type', 'text', 'seq', n, 'occurred_at', $2::text, 'step_id', 's',
       'message_id', 'm', 'role', 'assistant', 'text', repeat('x', 100000)) FROM runs, generate_series(1, 300) n WHERE id = $1`,
    [runId, at],
  );
  await db.query('UPDATE runs SET event_bytes = 30000000 WHERE id = $1', [runId]);
  const paths = [`/agent/runs/${runId}/conversation`, `/agent/conversations/${conversationId}`];
  const readers: ClientRequest[] = [];
  /** The answers to the refused requests, by the path of the request. None of these answers contains a part of the conversation. */
  const refused = new Map<string, IncomingMessage>();
  const read = (path: string) => {
    const headers = { authorization: `Bearer ${service.key}` };
    const asked = get(`${service.baseUrl}/api/v1${path}`, { headers, agent: false });
    asked
      .on('error', () => undefined)
      .on('response', (answer) => {
        if (answer.statusCode !== 200) refused.set(path, answer);
      });
    readers.push(asked);
  };
  try {
    for (const path of paths) {
      const more = () => {
        read(path);
        const answer = refused.get(path);
        return [answer?.statusCode, answer?.headers['retry-after']];
      };
      await expect.poll(more).toEqual([429, '2']);
    }
    expect(readers.length).toBeGreaterThan(19);
    for (const reader of readers) reader.destroy();
    const whole = async () => (await service.request('GET', paths[0] ?? '')).text.length;
    await expect.poll(whole).toBeGreaterThan(30_000_000);
  } finally {
    for (const reader of readers) reader.destroy();
  }
});

describe('the transcript of a run', () => {
  const download = async (runId: string) => {
    const redirect = await service.request('GET', `/agent/runs/${runId}/transcript`);
    expect(redirect.status).toBe(302);
    return await service.request('GET', redirect.headers.get('location') ?? '', { key: null });
  };

  test('answers 302 to a signed URL that needs no key and gives the lines in order', async () => {
    const { runId } = await runWithStory();
    const answer = await download(runId);
    expect(answer.text).toBe('{"line":1}\n{"line":2}\n');
    expect(answer.headers.get('content-type')).toBe('application/x-ndjson');
    expect(answer.headers.get('content-disposition')).toMatch(/^attachment/);
  });

  test('returns the same lines after it was composed into a blob', async () => {
    const { runId, executionId } = await runWithStory();
    await service.deps.db.query(`UPDATE executions SET phase = 'ended', ended_at = now() WHERE id = $1`, [executionId]);
    await makeTranscriptComposer(service.deps)();
    const [row] = await service.deps.db.query('SELECT transcript_blob FROM executions WHERE id = $1', [executionId]);
    expect(row?.transcript_blob).toBeTruthy();
    expect((await download(runId)).text).toBe('{"line":1}\n{"line":2}\n');
  });

  test('answers 404 while the run has no transcript', async () => {
    const { runId } = await service.startExecution();
    await service.problem(404, 'GET', `/agent/runs/${runId}/transcript`);
  });

  test('is no longer readable after the run is deleted', async () => {
    const { runId } = await runWithStory();
    const redirect = await service.request('GET', `/agent/runs/${runId}/transcript`);
    await service.deps.db.query('DELETE FROM runs WHERE id = $1', [runId]);
    await service.problem(404, 'GET', redirect.headers.get('location') ?? '', { key: null });
  });
});

test('the conversation of a harness that has only raw output answers 422, and the transcript is served', async () => {
  const { runId, conversationId, runToken } = await service.startExecution();
  await report(runToken, [{ type: 'transcript', line: '{"raw":true}' }]);
  const conversations = [`/agent/runs/${runId}/conversation`, `/agent/conversations/${conversationId}`];
  for (const path of conversations) await service.problem(404, 'GET', path);
  await service.request('POST', `/agent/runs/${runId}/cancel`);
  for (const path of conversations) {
    expect((await service.problem(422, 'GET', path)).error_code).toBe('operation_not_supported');
  }
  expect((await service.request('GET', `/agent/runs/${runId}/transcript`)).status).toBe(302);
});

describe('the transcript of a conversation', () => {
  test('answers 400 for the built-in harness', async () => {
    const { conversationId } = await runWithStory();
    const problem = await service.problem(400, 'GET', `/agent/conversations/${conversationId}/transcript`);
    expect(problem.error_code).toBe('operation_not_supported');
  });

  test('answers 302 for a third-party harness', async () => {
    const { runId, conversationId, runToken } = await service.startExecution({
      config: { harness: { type: 'acp', command: ['x'] } },
    });
    await service.problem(404, 'GET', `/agent/conversations/${conversationId}/transcript`);
    await report(runToken, story);
    const redirect = await service.request('GET', `/agent/conversations/${conversationId}/transcript`);
    expect(redirect.status).toBe(302);
    const answer = await service.request('GET', redirect.headers.get('location') ?? '', { key: null });
    expect(answer.text).toBe('{"line":1}\n{"line":2}\n');
    expect(runId).toBeTruthy();
  });
});
