import type { BlockedOn } from '@runyard/contract/runs/approvals';
import { describe, expect, test } from 'vitest';
import { openTestService } from '../../../../test/service.ts';

const service = await openTestService();

const at = '2026-01-02T03:04:05.000Z';
const request = {
  request_id: 'q1',
  kind: 'permission',
  title: 'rm -rf build',
  action: { id: 'a1', name: 'shell', category: 'command', input: { command: 'rm -rf build' }, fingerprint: 'f1' },
  resume: 'what only the harness reads',
};

interface Item {
  state: string;
  blocked_on?: BlockedOn;
  status_message?: { message: string };
}
const read = async (runId: string) => await service.ok<Item>('GET', `/agent/runs/${runId}`);
const send = (token: string, events: object[]) =>
  service.report(
    token,
    events.map((event, index) => ({ seq: index + 1, occurred_at: at, ...event })),
  );
const begin = [
  { type: 'agent_started', harness: 'oz', model_id: 'runbook' },
  { type: 'turn_started', step_id: 's1', prompt: 'Go.' },
];
const followUps = (runId: string) => `/agent/runs/${runId}/followups`;
const inbox = async (token: string) =>
  (await service.ok<{ items: Record<string, unknown>[] }>('GET', '/harness-support/inbox', { key: token })).items;

/** Starts a run whose agent asks a question, so that the run waits for a decision. */
async function blockedRun(config: Record<string, unknown> = {}) {
  const execution = await service.startExecution({ config: { approval_policy: 'ask', ...config } });
  await send(execution.runToken, [...begin, { type: 'blocked', step_id: 's1', request }]);
  return execution;
}

const endSandbox = (executionId: string) =>
  service.deps.db.query("UPDATE executions SET phase = 'ended', idle_until = NULL WHERE id = $1", [executionId]);

test('a question makes the run BLOCKED: the run shows the question, takes no slot and has no deadline', async () => {
  const { runId, executionId } = await blockedRun();
  expect(await read(runId)).toMatchObject({
    state: 'BLOCKED',
    status_message: { message: 'The agent asks for permission to use shell: rm -rf build' },
    blocked_on: {
      request_id: 'q1',
      kind: 'permission',
      title: 'rm -rf build',
      action: { name: 'shell', category: 'command', input: { command: 'rm -rf build' } },
      asked_at: at,
    },
  });
  expect(JSON.stringify(await read(runId))).not.toContain('only the harness');
  const [execution] = await service.deps.db.query(
    "SELECT phase, deadline_at, idle_until > now() + interval '9 minutes' AS waits FROM executions WHERE id = $1",
    [executionId],
  );
  expect(execution).toEqual({ phase: 'idle', deadline_at: null, waits: true });
  const timeline = await service.request<{ events: object[] }>('GET', `/agent/runs/${runId}/timeline`);
  expect(timeline.body.events.at(-1)).toMatchObject({
    event_type: 'oz_run_blocked',
    payload: { request: { request_id: 'q1', title: 'rm -rf build' } },
  });
  const conversation = await service.request('GET', `/agent/runs/${runId}/conversation`);
  expect(conversation.text).toContain('"name":"permission"');
  expect(conversation.text).not.toContain('only the harness');
});

test('a request of several lines is shown whole and unchanged, and a request that cannot be shown asks no question', async () => {
  const asked = async (title: string, command: string) => {
    const { runId, runToken } = await service.startExecution({ config: { approval_policy: 'ask' } });
    const action = { ...request.action, input: { command } };
    const answer = await send(runToken, [
      ...begin,
      { type: 'blocked', step_id: 's1', request: { ...request, title, action } },
    ]);
    return { answer, item: await read(runId) };
  };
  const lines = 'echo safe\nrm -rf important';
  const { item } = await asked(lines, lines);
  expect(item.status_message?.message).toBe(`The agent asks for permission to use shell:\n${lines}`);
  expect(item.blocked_on?.title).toBe(lines);
  const long = `${'echo a\n'.repeat(7_000)}rm b`;
  const whole = await asked(`${long.slice(0, 1_999)}…`, long);
  expect(whole.item.blocked_on?.action?.input).toEqual({ command: long });
  expect(whole.item.status_message?.message).toMatch(/…\n\(These are the first 399 of 2000 characters\.\)$/);
  const { answer, item: refused } = await asked('Too long', 'a'.repeat(70_000));
  expect([answer.status, answer.text]).toEqual([
    400,
    expect.stringContaining('cannot be shown whole: it has 70,014 bytes'),
  ]);
  expect(refused.state).not.toBe('BLOCKED');
});

test('a sandbox with an open question does not end even if its idle time is 0', async () => {
  const { runId, runToken } = await blockedRun({ idle_timeout_minutes: 0 });
  expect((await read(runId)).state).toBe('BLOCKED');
  expect(await inbox(runToken)).toEqual([]);
});

test('a request that is reported twice asks one question, and a request of a cancelled run asks none', async () => {
  const { runId, runToken } = await blockedRun();
  await service.request('POST', followUps(runId), { body: { decision: 'approve' } });
  await send(runToken, [...begin, { type: 'blocked', step_id: 's1', request }]);
  expect((await read(runId)).state).toBe('INPROGRESS');
  const other = await service.startExecution();
  await send(other.runToken, begin);
  await service.request('POST', `/agent/runs/${other.runId}/cancel`);
  await send(other.runToken, [...begin, { type: 'blocked', step_id: 's1', request }]);
  expect(await read(other.runId)).not.toHaveProperty('blocked_on');
});

test('a decision gets 200 and reaches the agent once, with the id of the request; earlier follow-ups do not count as answers', async () => {
  const { runId, runToken } = await service.startExecution({ config: { approval_policy: 'ask' } });
  await send(runToken, begin);
  await service.request('POST', followUps(runId), { body: { message: 'earlier' } });
  await send(runToken, [...begin, { type: 'blocked', step_id: 's1', request }]);
  expect((await read(runId)).state).toBe('BLOCKED');
  const body = { decision: 'deny', message: 'too dangerous', request_id: 'q1' };
  expect(await service.request('POST', followUps(runId), { body })).toMatchObject({ status: 200, body: {} });
  expect(await read(runId)).not.toHaveProperty('blocked_on');
  const [earlier, answer] = await inbox(runToken);
  expect(earlier).not.toHaveProperty('answers');
  expect(answer).toMatchObject({ message: 'too dangerous', answers: 'q1', decision: 'deny' });
  const taken = { type: 'follow_up_taken', follow_up_id: answer?.id };
  const decided = {
    type: 'decided',
    step_id: 's1',
    request_id: 'q1',
    kind: 'permission',
    title: 'rm -rf build',
    decision: 'deny',
    by: 'person',
    follow_up_id: answer?.id,
    message: 'too dangerous',
  };
  await send(runToken, [...begin, { type: 'blocked', step_id: 's1', request }, taken, decided]);
  expect(await inbox(runToken)).toMatchObject([{ message: 'earlier' }]);
  const { text } = await service.request('GET', `/agent/runs/${runId}/conversation`);
  expect(text.match(/"name":"permission"/g), 'request and decision are one event').toHaveLength(1);
  expect(text).toContain('"decision":"deny","by":"person"');
  const timeline = await service.request<{ events: object[] }>('GET', `/agent/runs/${runId}/timeline`);
  expect(timeline.body.events.at(-1)).toMatchObject({
    event_type: 'followup_received',
    payload: { answers: 'q1', decision: 'deny', follow_up_id: answer?.id, by: { type: 'user' } },
  });
});

test('a text without a decision counts as an answer and continues the run', async () => {
  const { runId, runToken } = await blockedRun();
  await service.request('POST', followUps(runId), { body: { message: 'only the cache' } });
  expect((await read(runId)).state).toBe('INPROGRESS');
  expect(await inbox(runToken)).toMatchObject([{ message: 'only the cache', answers: 'q1' }]);
});

describe('a run with an open question and without a sandbox', () => {
  const resolve = async (runId: string) => {
    const slot = { connectionId: runId, workerId: 'runyard-test', workerInstance: 'one', pool: runId, teamId: null };
    const { assignNext } = await import('../../../../test/assign-next.ts');
    const assignment = await assignNext(service.deps.executionDeps, slot);
    if (typeof assignment === 'string') throw new Error(assignment);
    const task = await service.request<{ conversation?: { kind: string } }>('POST', '/harness-support/resolve-prompt', {
      key: assignment.runToken,
      body: {},
    });
    return task.body;
  };

  test('stays BLOCKED until the decision, which begins a new execution whose task contains the decision', async () => {
    const { runId, executionId } = await blockedRun();
    await endSandbox(executionId);
    expect(await read(runId)).toMatchObject({
      state: 'BLOCKED',
      is_sandbox_running: false,
      blocked_on: { request_id: 'q1' },
    });
    await service.request('POST', followUps(runId), { body: { decision: 'approve', message: 'go' } });
    expect(await read(runId)).toMatchObject({ state: 'QUEUED' });
    expect(await read(runId)).not.toHaveProperty('blocked_on');
    expect(await resolve(runId)).toMatchObject({
      prompt: '',
      decision: { request, decision: 'approve', message: 'go' },
    });
  });

  test('continues without a decision after an empty message, with earlier follow-ups in the prompt', async () => {
    const { runId, runToken, executionId } = await service.startExecution({ config: { approval_policy: 'ask' } });
    await send(runToken, begin);
    await service.request('POST', followUps(runId), { body: { message: 'earlier' } });
    await send(runToken, [...begin, { type: 'blocked', step_id: 's1', request }]);
    await endSandbox(executionId);
    expect((await service.request('POST', followUps(runId), { body: {} })).status).toBe(200);
    const task = await resolve(runId);
    expect(task).toMatchObject({ prompt: 'earlier', decision: { request: { request_id: 'q1' } } });
    expect(task).not.toHaveProperty('decision.decision');
    expect(task).not.toHaveProperty('decision.message');
  });

  const conversationAfter = async (keep: { request_id?: string; after?: object[] }) => {
    const { runId, runToken, executionId } = await blockedRun();
    const query = keep.request_id === undefined ? '' : `&request_id=${keep.request_id}`;
    await service.ok('PUT', `/harness-support/memory?turn=1${query}`, {
      key: runToken,
      raw: 'what it knows',
      headers: { 'content-type': 'application/octet-stream' },
    });
    if (keep.after) await send(runToken, [...begin, { type: 'blocked', step_id: 's1', request }, ...keep.after]);
    await endSandbox(executionId);
    expect((await service.request('POST', followUps(runId), { body: { decision: 'approve' } })).status).toBe(200);
    return { executionId, conversation: (await resolve(runId)).conversation };
  };

  test('restores the memory that was saved before the question, unless the question was already decided', async () => {
    const asked = await conversationAfter({ request_id: 'q1' });
    expect(asked.conversation).toEqual({
      kind: 'memory',
      path: `/api/v1/harness-support/memory/${asked.executionId}`,
    });
    const decided = (request_id: string) => ({
      ...{ type: 'decided', step_id: 's1', kind: 'permission', title: 'x', decision: 'approve', by: 'person' },
      request_id,
    });
    expect((await conversationAfter({ request_id: 'q1', after: [decided('q0')] })).conversation?.kind).toBe('memory');
    expect((await conversationAfter({ request_id: 'q1', after: [decided('q1')] })).conversation?.kind).toBe('text');
    expect((await conversationAfter({ after: [decided('q1')] })).conversation?.kind).toBe('memory');
  });

  test('can be cancelled, and its execution does not start again', async () => {
    const { runId, executionId } = await blockedRun();
    await endSandbox(executionId);
    expect((await service.request('POST', `/agent/runs/${runId}/cancel`)).status).toBe(200);
    expect(await read(runId)).toMatchObject({ state: 'CANCELLED', is_sandbox_running: false });
  });
});

test('a follow-up gets 400 for a decision without a question, for a wrong or unknown request, and for an empty message', async () => {
  const runId = await service.newRun();
  const idle = await service.problem(400, 'POST', followUps(runId), { body: { decision: 'approve' } });
  expect(idle).toMatchObject({
    error_code: 'invalid_request',
    errors: [{ path: 'decision', message: expect.stringContaining('not BLOCKED') }],
  });
  await service.problem(400, 'POST', followUps(runId), { body: { message: 'a', request_id: 'q1' } });
  const asks = await blockedRun();
  for (const body of [
    { decision: 'approve', request_id: 'q0' },
    { decision: 'perhaps' },
    { decision: 'approve', message: 'a\u0000' },
    {},
    { message: ' ' },
  ])
    await service.problem(400, 'POST', followUps(asks.runId), { body });
  expect((await read(asks.runId)).state).toBe('BLOCKED');
  await service.request('POST', followUps(asks.runId), { body: { decision: 'approve' } });
  await service.problem(400, 'POST', followUps(asks.runId), { body: { decision: 'deny' } });
});

test('a run with an open question answers 400 to an interrupt, 409 to a delete, and 404 to the key of another team', async () => {
  const { runId } = await blockedRun();
  const interrupted = await service.problem(400, 'POST', `/agent/runs/${runId}/interrupt`);
  expect(interrupted.detail).toMatch(/BLOCKED.*answer.*cancel/);
  await service.problem(409, 'DELETE', `/agent/runs/${runId}`);
  await service.problem(404, 'POST', followUps(runId), { body: { decision: 'approve' }, key: service.otherKey });
  expect((await read(runId)).state).toBe('BLOCKED');
});

test('a create with an unknown approval_policy gets 400 with the known policies', async () => {
  const body = { prompt: 'Go.', config: { approval_policy: 'sometimes' } };
  const problem = await service.problem(400, 'POST', '/agent/runs', { body });
  expect(problem.errors).toEqual([
    { path: 'config.approval_policy', message: expect.stringMatching(/ask.*auto-approve.*auto-deny/) },
  ]);
});

test('a question stays open when its turn ends, but a failure of the turn ends the run', async () => {
  const finish = async (token: string, report: object) =>
    await service.ok('POST', '/harness-support/finish-task', { key: token, body: { turn: 1, ...report } });
  const one = await blockedRun();
  expect(await finish(one.runToken, { success: true, summary: 'done' })).toEqual({ next: 'wait' });
  expect((await read(one.runId)).state).toBe('BLOCKED');
  await service.request('POST', followUps(one.runId), { body: { decision: 'approve' } });
  expect((await read(one.runId)).state).toBe('INPROGRESS');
  const away = await blockedRun();
  await service.deps.db.query("UPDATE executions SET phase = 'stopping', idle_until = NULL WHERE id = $1", [
    away.executionId,
  ]);
  const killed = { success: false, summary: 'x', error: { code: 'agent_process_failed', message: 'It was killed.' } };
  expect(await finish(away.runToken, killed)).toEqual({ next: 'leave' });
  expect((await read(away.runId)).state, 'an agent that must leave ends its turn, not the question').toBe('BLOCKED');
  const two = await blockedRun();
  const error = { code: 'internal_error', message: 'It broke.' };
  expect(await finish(two.runToken, { success: false, summary: 'x', error })).toEqual({ next: 'leave' });
  expect(await read(two.runId)).toMatchObject({ state: 'ERROR', status_message: { message: 'It broke.' } });
  expect(await read(two.runId)).not.toHaveProperty('blocked_on');
});

describe('an agent key', () => {
  const answer = (runId: string, key: string, body: object = { decision: 'approve' }) =>
    service.request('POST', followUps(runId), { key, body });
  const uidOf = async (key: string) =>
    (await service.deps.db.query<{ id: string }>('SELECT id FROM api_keys WHERE last_four = $1', [key.slice(-4)]))[0]
      ?.id ?? '';

  test.each([
    ['a decision', { decision: 'approve' }],
    ['words', { message: 'Yes, do it.' }],
  ])("does not answer a person's run by %s, with or without a sandbox", async (_name, body) => {
    const { runId, executionId } = await blockedRun();
    const key = await service.newKey({ kind: 'agent' });
    const refused = await service.problem(403, 'POST', followUps(runId), { key, body });
    expect(refused.detail).toContain('config.approvals_from');
    await endSandbox(executionId);
    await service.problem(403, 'POST', followUps(runId), { key, body });
    expect((await read(runId)).state).toBe('BLOCKED');
    expect((await answer(runId, service.key)).status, 'a person answers').toBe(200);
  });

  test('may answer a run whose `approvals_from` contains the key; timeline, conversation and stream show the key as the author, even if the agent reports another author', async () => {
    const key = await service.newKey({ kind: 'agent' });
    const uid = await uidOf(key);
    const { runId, runToken } = await blockedRun({ approvals_from: [uid] });
    await service.problem(403, 'POST', followUps(runId), {
      key: await service.newKey({ kind: 'agent' }),
      body: { decision: 'approve' },
    });
    expect((await answer(runId, key)).status).toBe(200);
    const [item] = await inbox(runToken);
    const forged = { type: 'user', uid: 'somebody-else' };
    await service.report(runToken, [
      {
        seq: 4,
        occurred_at: at,
        type: 'decided',
        step_id: 's1',
        request_id: 'q1',
        kind: 'permission',
        title: 'rm -rf build',
        decision: 'approve',
        by: 'person',
        answered_by: forged,
        follow_up_id: item?.id,
      },
    ]);
    const author = { type: 'service_account', uid, display_name: 'A key' };
    // The members are in the order in which PostgreSQL returns them, because the text is searched for in other answers.
    const stored = JSON.stringify({ uid, type: author.type, display_name: author.display_name });
    const timeline = await service.request<{ events: object[] }>('GET', `/agent/runs/${runId}/timeline`);
    expect(timeline.body.events).toContainEqual(
      expect.objectContaining({ event_type: 'followup_received', payload: expect.objectContaining({ by: author }) }),
    );
    const conversation = await service.request('GET', `/agent/runs/${runId}/conversation`);
    expect(conversation.text).toContain(`"by":"agent","answered_by":${stored}`);
    expect(conversation.text).not.toContain('somebody-else');
    const stream = await service.request('GET', `/agent/runs/${runId}/events?follow=false`);
    expect(stream.text).toContain(`"answered_by":${stored}`);
  });

  test.each([
    ['approvals_from', ['x']],
    ['followups_from', 'team'],
  ])('does not let an agent decide about %s of a run that it starts for a person', async (member, value) => {
    const body = { prompt: 'a', on_behalf_of: 'somebody', config: { [member]: value } };
    const refused = await service.problem(403, 'POST', '/agent/runs', {
      key: await service.newKey({ kind: 'agent' }),
      body,
    });
    expect(refused.detail).toContain(`config.${member}`);
  });

  test('answers a question of a child run only if the parent run names the key', async () => {
    const { runToken } = await service.startExecution({ mode: 'orchestrate', config: { approvals_from: ['a', 'b'] } });
    const child = await service.ok<{ run_id: string }>('POST', '/harness-support/child-runs', {
      key: runToken,
      body: { prompt: 'a', config: { approvals_from: ['b', 'c'] } },
    });
    const body = await service.ok<{ agent_config: object }>('GET', `/agent/runs/${child.run_id}`);
    expect(body.agent_config).toMatchObject({ approvals_from: ['b'] });
  });
});
