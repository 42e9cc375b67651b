import type { RunMessagePage } from '@runyard/contract/runs/conversation-pages';
import type { RunItem } from '@runyard/contract/runs/runs';
import type { TimelineEvent } from '@runyard/contract/runs/timeline';
import { describe, expect, test } from 'vitest';
import { openTestService, type RequestOptions } from '../../../../test/service.ts';

const service = await openTestService();

const path = (runId: string) => `/agent/runs/${runId}/followups`;
const waiting = async (runId: string) =>
  await service.deps.db.query<{ message: string; mode: string | null }>(
    'SELECT message, mode FROM followups WHERE run_id = $1 ORDER BY position',
    [runId],
  );
interface Inbox {
  items: { type: string; id: string; position: number; message: string; mode?: string }[];
}
const at = '2026-01-02T03:04:05.000Z';
const start = async (token: string) => {
  await service.request('POST', '/harness-support/resolve-prompt', { key: token, body: {} });
  await service.begin(token, 'Go.');
};
const finish = async (token: string, turn: number) => {
  const body = { turn, success: true, summary: 'done' };
  return (await service.ok<{ next: string }>('POST', '/harness-support/finish-task', { key: token, body })).next;
};
const inboxOf = async (token: string, after = 0) =>
  (await service.ok<Inbox>('GET', `/harness-support/inbox?after=${after}`, { key: token })).items;

test('a follow-up gets 200 with its id, and after a turn the agent gets one message with its mode until it confirms it', async () => {
  const { runId, runToken } = await service.startExecution();
  await start(runToken);
  const answers = [];
  for (const body of [{ message: 'one', mode: 'plan' }, { message: 'two' }]) {
    const { status, body: answer } = await service.request<{ followup_id: string }>('POST', path(runId), { body });
    answers.push([status, answer]);
  }
  expect(await inboxOf(runToken), 'a turn is in progress').toEqual([]);
  const shown = async () => (await service.ok<RunItem>('GET', `/agent/runs/${runId}`)).waiting_followups;
  const waits = (await shown()) ?? [];
  expect(waits).toMatchObject([
    { message: 'one', mode: 'plan', attachments: [] },
    { message: 'two', created_at: expect.stringMatching(/^\d{4}-.*Z$/) },
  ]);
  expect(answers).toEqual(
    waits.map(({ followup_id: id }) => [200, { followup_id: id, outcome: 'live_session', run_id: runId }]),
  );
  expect(await finish(runToken, 1)).toBe('wait');
  const items = await inboxOf(runToken);
  expect(items).toMatchObject([{ type: 'follow_up', id: waits[0]?.followup_id, message: 'one', mode: 'plan' }]);
  expect(await inboxOf(runToken, items[0]?.position)).toEqual([]);
  const take = async (seq: number, id: string | undefined) => {
    const taken = { seq, occurred_at: at, type: 'follow_up_taken', follow_up_id: id };
    await service.report(runToken, [taken]);
  };
  await take(3, items[0]?.id);
  expect(await inboxOf(runToken)).toEqual([]);
  expect(await shown()).toMatchObject([{ message: 'two' }]);
  expect(await finish(runToken, 2)).toBe('wait');
  expect(await finish(runToken, 2), 'a repeated report').toBe('wait');
  expect(await inboxOf(runToken, items[0]?.position)).toMatchObject([{ message: 'two' }]);
  await take(4, waits[1]?.followup_id);
  await finish(runToken, 2);
  await service.request('POST', path(runId), { body: { message: 'three' } });
  expect(await inboxOf(runToken), 'a late report of an earlier turn ends no turn').toEqual([]);
});

const timelineOf = async (runId: string) =>
  (await service.ok<{ events: TimelineEvent[] }>('GET', `/agent/runs/${runId}/timeline`)).events;

test('the conversation names sender and mode of each message, and the timeline names who interrupted and cancelled', async () => {
  const { runId, runToken } = await service.startExecution();
  await start(runToken);
  const member = await service.newKey({ role: 'member' });
  const sent = await service.request<{ followup_id: string }>('POST', path(runId), {
    body: { message: 'Plan it.', mode: 'plan' },
    key: member,
  });
  await service.request('POST', `/agent/runs/${runId}/interrupt`, { key: member });
  await service.request('POST', `/agent/runs/${runId}/interrupt`);
  await finish(runToken, 1);
  const forged = { sent_by: { type: 'user', uid: 'forged' }, mode: 'orchestrate' };
  const tell = (...events: object[]) => service.report(runToken, events);
  await tell({ seq: 3, occurred_at: at, type: 'follow_up_taken', follow_up_id: sent.body.followup_id });
  await tell({ seq: 4, occurred_at: at, type: 'turn_started', step_id: 's2', prompt: 'Plan it.', ...forged });
  await service.request('POST', `/agent/runs/${runId}/cancel`);
  const page = await service.request<RunMessagePage>('GET', `/agent/runs/${runId}/conversation/messages?limit=10`);
  const prompts = page.body.steps.flatMap(({ messages }) => messages);
  expect(prompts.map(({ sent_by: by, mode }) => [by?.type, by?.uid === 'forged', mode])).toEqual([
    [undefined, false, undefined],
    ['user', false, 'plan'],
  ]);
  const sender = prompts[1]?.sent_by;
  const acts = (await timelineOf(runId)).filter(({ event_type: type }) => /interrupted|cancelled/.test(type));
  expect(acts.map(({ event_type: type, payload }) => [type, payload?.by])).toMatchObject([
    ['turn_interrupted', sender],
    ['oz_run_cancelled', { type: 'user', display_name: expect.any(String) }],
  ]);
  expect(acts[1]?.payload?.by).not.toEqual(sender);
});

describe('a follow-up that waits', () => {
  const one = (runId: string, id: string | undefined) => `${path(runId)}/${id}`;
  const send = async (runId: string, message: string, options: Partial<RequestOptions> = {}) =>
    (await service.ok<{ followup_id: string }>('POST', path(runId), { ...options, body: { message } })).followup_id;
  const edit = (runId: string, id: string, message: string, key = service.key) =>
    service.request('PATCH', one(runId, id), { body: { message }, key });

  test('gets the text to which its author changed it, and never reaches the agent if it is withdrawn', async () => {
    const { runId, runToken } = await service.startExecution();
    await start(runToken);
    const [first, second] = [await send(runId, 'one'), await send(runId, 'two')];
    const bytes = async () =>
      (await service.deps.db.query<{ n: number }>('SELECT sum(bytes)::int AS n FROM storage_changes'))[0]?.n ?? 0;
    const before = await bytes();
    expect(await edit(runId, second, 'twenty')).toMatchObject({ status: 200, body: {} });
    expect((await bytes()) - before).toBe(3);
    const withdrawn = await service.request('DELETE', one(runId, first));
    expect([withdrawn.status, withdrawn.body]).toEqual([200, { success: true }]);
    await service.problem(404, 'DELETE', one(runId, first));
    expect(await finish(runToken, 1)).toBe('wait');
    const [item] = await inboxOf(runToken);
    expect(item).toMatchObject({ id: second, message: 'twenty' });
    const told = (await timelineOf(runId)).filter(({ event_type: type }) => type.startsWith('followup_')).slice(2);
    expect(told.map(({ event_type: type, payload }) => [type, payload?.follow_up_id])).toEqual([
      ['followup_edited', second],
      ['followup_withdrawn', first],
    ]);
    expect(told[0]?.payload?.by).toMatchObject({ type: 'user' });
  });

  test('can no longer be changed or withdrawn when the turn before it has ended', async () => {
    const { runId, runToken } = await service.startExecution();
    await start(runToken);
    const [first, second] = [await send(runId, 'one'), await send(runId, 'two')];
    await finish(runToken, 1);
    const { detail } = await service.problem(409, 'PATCH', one(runId, first), { body: { message: 'late' } });
    expect(detail).toContain('The agent already has this follow-up');
    await service.problem(409, 'DELETE', one(runId, first));
    expect((await edit(runId, second, 'in time')).status).toBe(200);
    const [item] = await inboxOf(runToken);
    const events = [{ seq: 3, occurred_at: at, type: 'follow_up_taken', follow_up_id: item?.id }];
    await service.report(runToken, events);
    await service.problem(409, 'DELETE', one(runId, first));
    expect(await waiting(runId)).toMatchObject([{ message: 'one' }, { message: 'in time' }]);
  });

  test('reaches the agent with its last text, or not at all, if the turn ends at the same time', async () => {
    for (let round = 0; round < 6; round++) {
      const { runId, runToken } = await service.startExecution();
      await start(runToken);
      const id = await send(runId, 'old');
      const change = round % 2 === 0 ? edit(runId, id, 'new') : service.request('DELETE', one(runId, id));
      const [changed, next] = await Promise.all([change, finish(runToken, 1)]);
      const items = next === 'wait' ? await inboxOf(runToken) : [];
      const gone = round % 2 === 0 ? ['new'] : [];
      expect(items.map(({ message }) => message)).toEqual(changed.status === 200 ? gone : ['old']);
      expect([200, 409]).toContain(changed.status);
    }
  });

  test('is changed only by its author, and withdrawn also by administrators, but not by members, agents, runs and other teams', async () => {
    const { runId, runToken } = await service.startExecution();
    await start(runToken);
    const author = await service.newKey({ role: 'member' });
    const id = await send(runId, 'mine', { key: author });
    const body = { message: 'forged' };
    const others = [await service.newKey({ role: 'member' }), await service.newKey({ kind: 'agent' })];
    for (const key of others) {
      await service.problem(403, 'PATCH', one(runId, id), { body, key });
      await service.problem(403, 'DELETE', one(runId, id), { key });
    }
    await service.problem(403, 'PATCH', one(runId, id), { body });
    for (const [status, key] of [
      [403, await service.newKey({ role: 'viewer' })],
      [401, runToken],
      [404, service.otherKey],
    ] as const) {
      await service.problem(status, 'PATCH', one(runId, id), { body, key });
      await service.problem(status, 'DELETE', one(runId, id), { key });
    }
    for (const message of ['', ' \n'])
      await service.problem(400, 'PATCH', one(runId, id), { body: { message }, key: author });
    expect((await edit(runId, id, 'mine too', author)).status).toBe(200);
    // A follow-up of another run is not found below this one.
    await service.problem(404, 'DELETE', one(await service.newRun(), id), { key: author });
    const administrator = await service.newKey({ role: 'admin' });
    expect((await service.request('DELETE', one(runId, id), { key: administrator })).status).toBe(200);
  });

  test('cannot be withdrawn if the run was queued again only for it', async () => {
    const { runId, runToken, executionId } = await service.startExecution();
    await start(runToken);
    await finish(runToken, 1);
    await service.deps.db.query("UPDATE executions SET phase = 'ended' WHERE id = $1", [executionId]);
    const [first, second] = [await send(runId, 'again'), await send(runId, 'and this')];
    expect((await service.request('DELETE', one(runId, first))).status).toBe(200);
    const { detail } = await service.problem(409, 'DELETE', one(runId, second));
    expect(detail).toContain('Cancel the run instead');
    expect((await edit(runId, second, 'changed')).status).toBe(200);
    await service.request('POST', `/agent/runs/${runId}/cancel`);
    expect((await service.request('DELETE', one(runId, second))).status).toBe(200);
  });

  test('of an execution of an earlier version is with its agent, so it cannot be changed', async () => {
    const { runId, runToken, executionId } = await service.startExecution();
    await start(runToken);
    await service.deps.db.query('UPDATE executions SET awaits_followup = NULL WHERE id = $1', [executionId]);
    const id = await send(runId, 'one');
    expect(await inboxOf(runToken)).toMatchObject([{ message: 'one' }]);
    await service.problem(409, 'DELETE', one(runId, id));
    await finish(runToken, 1);
    await send(runId, 'two');
    expect(await inboxOf(runToken)).toMatchObject([{ message: 'one' }, { message: 'two' }]);
  });
});

test('the answer to a follow-up shows its sender in which way the follow-up reaches the agent', async () => {
  const outcomeFor = async (runId: string) =>
    (await service.ok<{ outcome: string }>('POST', path(runId), { body: { message: 'a' } })).outcome;
  expect(await outcomeFor(await service.newRun())).toBe('queued_prompt');
  const { runId, runToken, executionId } = await service.startExecution();
  expect(await outcomeFor(runId)).toBe('queue_pending');
  await start(runToken);
  expect(await outcomeFor(runId)).toBe('live_session');
  await service.deps.db.query('DELETE FROM followups WHERE run_id = $1 AND execution_id IS NULL', [runId]);
  expect(await finish(runToken, 1)).toBe('wait');
  await service.deps.db.query("UPDATE executions SET phase = 'ended' WHERE id = $1", [executionId]);
  expect(await outcomeFor(runId)).toBe('handoff_execution');
  expect(await outcomeFor(runId)).toBe('queue_pending');
});

test('the service ignores a repeated report of the end of a turn after a follow-up has continued the run', async () => {
  const { runId, runToken } = await service.startExecution();
  await start(runToken);
  expect(await finish(runToken, 1)).toBe('wait');
  const state = async () => (await service.ok<{ state: string }>('GET', `/agent/runs/${runId}`)).state;
  expect(await state()).toBe('SUCCEEDED');
  await service.request('POST', path(runId), { body: { message: 'more' } });
  expect(await state()).toBe('INPROGRESS');
  const [item] = await inboxOf(runToken);
  const taken = { seq: 3, occurred_at: at, type: 'follow_up_taken', follow_up_id: item?.id };
  await service.report(runToken, [taken]);
  expect(await finish(runToken, 1)).toBe('wait');
  expect(await state()).toBe('INPROGRESS');
  expect(await finish(runToken, 2)).toBe('wait');
  expect(await state()).toBe('SUCCEEDED');
});

test('with idle_timeout_minutes 0 the agent ends after the turn', async () => {
  const { runToken } = await service.startExecution({ config: { idle_timeout_minutes: 0 } });
  await start(runToken);
  expect(await finish(runToken, 1)).toBe('leave');
  expect(await inboxOf(runToken)).toEqual([{ type: 'leave' }]);
});

test('waiting follow-ups are added to the prompt when the agent asks for its task', async () => {
  const { runId, runToken } = await service.startExecution({ prompt: 'First.' });
  await service.request('POST', path(runId), { body: { message: 'Second.', mode: 'plan' } });
  const task = await service.request('POST', '/harness-support/resolve-prompt', { key: runToken, body: {} });
  expect(task.body).toMatchObject({ prompt: 'First.\n\nSecond.', mode: 'plan' });
  const read = async () => await service.ok<{ submitted_prompt?: string }>('GET', `/agent/runs/${runId}`);
  expect(await read()).toMatchObject({ prompt: 'First.', submitted_prompt: 'First.\n\nSecond.' });
  await start(runToken);
  expect(await inboxOf(runToken)).toEqual([]);
  await service.request('POST', path(runId), { body: { message: 'Third.' } });
  expect(await read()).toMatchObject({ submitted_prompt: 'First.\n\nSecond.' });
});

test('an empty message gets 400 unless the run has ended and has a conversation', async () => {
  const { runId, runToken, executionId } = await service.startExecution({ prompt: 'First.' });
  for (const body of [{}, { message: '' }, { message: ' \n' }]) {
    const problem = await service.problem(400, 'POST', path(runId), { body });
    expect(problem.errors?.[0]?.path).toBe('message');
  }
  await start(runToken);
  await finish(runToken, 1);
  await service.problem(400, 'POST', path(runId), { body: {} });
  await service.deps.db.query("UPDATE executions SET phase = 'ended' WHERE id = $1", [executionId]);
  expect((await service.request('POST', path(runId), { body: {} })).status).toBe(200);
  expect(await waiting(runId)).toEqual([{ message: 'Continue.', mode: null }]);
  expect((await service.ok<{ state: string }>('GET', `/agent/runs/${runId}`)).state).toBe('QUEUED');
});

test('a follow-up to a run that ended before its first turn starts the run with the prompt', async () => {
  const runId = await service.newRun({ prompt: 'First.' });
  await service.request('POST', `/agent/runs/${runId}/cancel`);
  await service.problem(400, 'POST', path(runId), { body: {} });
  await service.request('POST', path(runId), { body: { message: 'Do it after all.' } });
  const [execution] = await service.deps.db.query<{ continues: number | null }>(
    'SELECT continues FROM executions WHERE run_id = $1 AND number = 2',
    [runId],
  );
  expect(execution).toEqual({ continues: null });
});

test.each([
  ['a message that is no text', { message: 1 }],
  ['a NUL character', { message: 'a\u0000' }],
  ['an unknown mode', { message: 'a', mode: 'fast' }],
  ['more than 1 MB', { message: 'x'.repeat(1024 * 1024 + 1) }],
])('a follow-up with %s gets 400', async (_name, body) => {
  const runId = await service.newRun();
  await service.problem(400, 'POST', path(runId), { body });
  expect(await waiting(runId)).toEqual([]);
});

test('a follow-up gets 401 without a key, 403 with another team’s header, 404 for another team’s run and an unknown id', async () => {
  const runId = await service.newRun();
  const body = { message: 'a' };
  await service.problem(401, 'POST', path(runId), { body, key: null });
  await service.problem(403, 'POST', path(runId), { body, headers: { 'x-team-uid': 'another' } });
  await service.problem(404, 'POST', path(runId), { body, key: service.otherKey });
  await service.problem(404, 'POST', path('0199a000-0000-7000-8000-000000000000'), { body });
  await service.problem(404, 'POST', path('x'), { body });
  expect(await waiting(runId)).toEqual([]);
});

test('a follow-up with a repeated Idempotency-Key is sent once, and another message with this key gets 409', async () => {
  const runId = await service.newRun();
  const headers = { 'idempotency-key': 'k1' };
  const send = () => service.request<{ followup_id: string }>('POST', path(runId), { body: { message: 'a' }, headers });
  const answers = await Promise.all([send(), send(), send()]);
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
  expect(new Set(answers.map(({ body }) => body.followup_id)).size).toBe(1);
  expect(await waiting(runId)).toHaveLength(1);
  await service.problem(409, 'POST', path(runId), { body: { message: 'b' }, headers });
});

test('the service keeps for each execution the harness memory of the latest turn, and only runs of the same conversation can read it', async () => {
  const mine = await service.startExecution();
  const other = await service.startExecution();
  const put = (turn: number, raw: string) =>
    service.request('PUT', `/harness-support/memory?turn=${turn}`, {
      key: mine.runToken,
      raw,
      headers: { 'content-type': 'application/octet-stream' },
    });
  for (const [turn, raw] of [
    [1, 'one'],
    [2, 'two'],
    [1, 'late'],
  ] as const)
    expect((await put(turn, raw)).status).toBe(200);
  const read = `/harness-support/memory/${mine.executionId}`;
  expect((await service.request('GET', read, { key: mine.runToken })).text).toBe('two');
  const part = (range: string) =>
    service.request('GET', read, { key: mine.runToken, headers: { range: `bytes=${range}` } });
  expect(await part('1-')).toMatchObject({ status: 206, text: 'wo' });
  expect((await part('3-')).status).toBe(416);
  await service.problem(404, 'GET', read, { key: other.runToken });
});

test('a follow-up with a body over 64 MB gets 413', async () => {
  const runId = await service.newRun();
  const raw = `{"message":"${'a'.repeat(64 * 1024 * 1024)}"}`;
  await service.problem(413, 'POST', path(runId), { raw, headers: { 'content-type': 'application/json' } });
});

test('an upload of harness memory over 32 MB gets 413, and the service stores nothing', async () => {
  const { runToken, executionId } = await service.startExecution();
  const answer = await fetch(`${service.baseUrl}/api/v1/harness-support/memory?turn=1`, {
    method: 'PUT',
    headers: { authorization: `Bearer ${runToken}`, 'content-type': 'application/octet-stream' },
    body: new Uint8Array(32 * 1024 * 1024 + 1),
  });
  expect(answer.status).toBe(413);
  await service.problem(404, 'GET', `/harness-support/memory/${executionId}`, { key: runToken });
});

test('the report of an agent that it shuts down gets 200', async () => {
  const { runToken } = await service.startExecution();
  const body = { reason: 'finished' };
  const answer = await service.request('POST', '/harness-support/report-shutdown', { key: runToken, body });
  expect([answer.status, answer.body]).toEqual([200, {}]);
});

test.each([
  ['before the agent began', false],
  ['in its first turn', true],
])(
  'a retry of an execution that failed %s has the prompt and the follow-ups that are part of the prompt',
  async (_name, begun) => {
    const { runId, runToken } = await service.startExecution({ prompt: 'First.' });
    await service.request('POST', path(runId), { body: { message: 'Second.' } });
    if (begun) await start(runToken);
    else await service.request('POST', '/harness-support/resolve-prompt', { key: runToken, body: {} });
    const error = { code: 'resource_unavailable', message: 'Overloaded.' };
    const body = { turn: 1, success: false, summary: '', error };
    await service.request('POST', '/harness-support/finish-task', { key: runToken, body });
    const [next] = await service.deps.db.query('SELECT continues FROM executions WHERE run_id = $1 AND number = 2', [
      runId,
    ]);
    expect(next).toEqual({ continues: null });
    const waits = await service.deps.db.query(
      'SELECT message FROM followups WHERE run_id = $1 AND execution_id IS NULL',
      [runId],
    );
    expect(waits).toEqual([{ message: 'Second.' }]);
  },
);
