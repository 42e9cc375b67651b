import type { BlockedOn } from '@runyard/contract/runs/approvals';
import { describe, expect, test } from 'vitest';
import { openTestService } from '../../../../test/service.ts';
import { reconcile } from '../../../runs/executions/reconcile/reconcile.ts';
import { endSandbox } from '../../../runs/executions/reconcile/sandbox-end.ts';

const service = await openTestService();

const at = '2026-01-02T03:04:05.000Z';
const path = (runId: string) => `/agent/runs/${runId}/followups`;
const failure = 'Setup command 1 of 1 exited with code 5.';

interface Item {
  state: string;
  updated_at: string;
  is_sandbox_running: boolean;
  status_message?: { message: string; error_code?: string; session_debug_until?: string; debug_agent_active?: boolean };
  blocked_on?: BlockedOn;
}
const read = async (runId: string) => await service.ok<Item>('GET', `/agent/runs/${runId}`);
const say = (runId: string, message: string, status = 200) =>
  service.request('POST', path(runId), { body: { message } }).then((answer) => expect(answer.status).toBe(status));
const inbox = async (key: string, after = 0) =>
  (await service.ok<{ items: Record<string, unknown>[] }>('GET', `/harness-support/inbox?after=${after}`, { key }))
    .items;
const send = (key: string, seq: number, event: object) => service.report(key, [{ seq, occurred_at: at, ...event }]);
const finish = async (key: string, turn: number, report: object = { success: true, summary: 'looked' }) =>
  (await service.ok<{ next: string }>('POST', '/harness-support/finish-task', { key, body: { turn, ...report } })).next;
const setupFailed = { success: false, summary: failure, error: { code: 'environment_setup_failed', message: failure } };
const phaseOf = async (executionId: string) =>
  (await service.deps.db.query<{ phase: string }>('SELECT phase FROM executions WHERE id = $1', [executionId]))[0]
    ?.phase;

/** Starts a run whose setup fails, in an environment that keeps the sandbox for the given number of minutes. */
async function failedRun(minutes?: number | null) {
  const environment = await service.request<{ uid: string }>('POST', '/agent/environments', {
    body: {
      config: { name: 'E', ...(minutes === undefined ? {} : { failure_session_retention_minutes: minutes }) },
    },
  });
  const execution = await service.startExecution({
    prompt: 'First.',
    config: { environment_id: environment.body.uid },
  });
  const next = await finish(execution.runToken, 1, setupFailed);
  return { ...execution, next };
}

const failedItem = { state: 'FAILED', status_message: { message: failure, error_code: 'environment_setup_failed' } };
const minutesLeft = (item: Item) => (Date.parse(item.status_message?.session_debug_until ?? '') - Date.now()) / 60_000;

test('a failed setup keeps the sandbox for the time of the environment, 10 minutes by default', async () => {
  const short = await failedRun(3);
  expect(short.next).toBe('wait');
  const item = await read(short.runId);
  expect(item).toMatchObject({ ...failedItem, is_sandbox_running: true, debug_agent_available: true });
  expect(item.status_message?.debug_agent_active).toBe(false);
  expect(minutesLeft(item)).toBeGreaterThan(2);
  expect(minutesLeft(item)).toBeLessThan(3.1);
  expect(minutesLeft(await read((await failedRun()).runId))).toBeGreaterThan(9);
});

test('the sandbox ends at once if the environment sets 0 or null, and after other failures', async () => {
  for (const minutes of [0, null]) {
    const { runId, next } = await failedRun(minutes);
    expect(next).toBe('leave');
    expect((await read(runId)).status_message).not.toHaveProperty('session_debug_until');
  }
  const other = await service.startExecution();
  expect(await finish(other.runToken, 1, { ...setupFailed, error: { message: 'It failed.' } })).toBe('leave');
});

test('a follow-up reaches the sandbox, and changes only the end of the window', async () => {
  const { runId, runToken, executionId } = await failedRun(3);
  const before = await read(runId);
  await say(runId, 'what is there?');
  expect(await phaseOf(executionId)).toBe('running');
  const [item] = await inbox(runToken);
  expect(item).toMatchObject({ message: 'what is there?', debug: true });
  await send(runToken, 1, { type: 'follow_up_taken', follow_up_id: item?.id });
  await send(runToken, 2, { type: 'turn_started', step_id: 's1', prompt: 'what is there?' });
  const during = await read(runId);
  expect(during).toMatchObject({ ...failedItem, debug_agent_available: true });
  expect(during.status_message?.debug_agent_active).toBe(true);
  await say(runId, 'and now?');
  expect(await finish(runToken, 2)).toBe('wait');
  expect(await phaseOf(executionId), 'a further one waits').toBe('running');
  const [second] = await inbox(runToken);
  await send(runToken, 3, { type: 'follow_up_taken', follow_up_id: second?.id });
  expect(
    await finish(runToken, 3, { success: false, summary: 'x', error: { code: 'internal_error', message: 'x' } }),
  ).toBe('wait');
  const after = await read(runId);
  expect(after).toMatchObject({ ...failedItem, is_sandbox_running: true });
  expect(after.updated_at > before.updated_at).toBe(true);
  expect((after.status_message?.session_debug_until ?? '') > (before.status_message?.session_debug_until ?? '')).toBe(
    true,
  );
  const body = await service.ok<{ events: { event_type: string }[] }>('GET', `/agent/runs/${runId}/timeline`);
  const types = body.events.map(({ event_type }) => event_type);
  expect(types.filter((type) => type === 'followup_received')).toHaveLength(2);
  expect(types.filter((type) => type === 'oz_run_failed')).toHaveLength(1);
});

test('follow-ups that were sent before the failure wait for a sandbox whose setup succeeds', async () => {
  const execution = await service.startExecution({ prompt: 'First.' });
  await say(execution.runId, 'earlier');
  expect(await finish(execution.runToken, 1, setupFailed)).toBe('wait');
  expect(await inbox(execution.runToken)).toEqual([]);
  await say(execution.runId, 'what is there?');
  expect(await inbox(execution.runToken)).toMatchObject([{ message: 'what is there?' }]);
});

test('a run that continues after the debug window gets the prompt and the debug conversation as text, and repeats no turn', async () => {
  const { runId, runToken, executionId } = await failedRun();
  await say(runId, 'what is there?');
  const [item] = await inbox(runToken);
  await send(runToken, 1, { type: 'follow_up_taken', follow_up_id: item?.id });
  await send(runToken, 2, { type: 'turn_started', step_id: 's1', prompt: 'what is there?' });
  await send(runToken, 3, { type: 'text', step_id: 's1', message_id: 'm', role: 'assistant', text: 'A typing error.' });
  await send(runToken, 4, { type: 'turn_finished', step_id: 's1' });
  await finish(runToken, 2);
  await service.deps.db.query(
    "UPDATE executions SET idle_until = clock_timestamp() - interval '1 second' WHERE id = $1",
    [executionId],
  );
  await reconcile(service.deps.executionDeps);
  expect(await inbox(runToken)).toEqual([{ type: 'leave' }]);
  expect((await read(runId)).status_message).not.toHaveProperty('session_debug_until');
  await endSandbox(service.deps.executionDeps, executionId, { kind: 'exited', message: 'The agent ended.' });
  expect(await read(runId)).toMatchObject({
    ...failedItem,
    is_sandbox_running: false,
    debug_agent_available: false,
  });
  await say(runId, 'It is repaired.');
  expect((await read(runId)).state).toBe('QUEUED');
  const next = await service.claimRun(runId);
  const task = await service.request('POST', '/harness-support/resolve-prompt', { key: next.runToken, body: {} });
  expect(task.body).toMatchObject({
    prompt: 'First.\n\nIt is repaired.',
    conversation: { kind: 'text', text: expect.stringMatching(/what is there\?.*A typing error\./s) },
  });
});

test('an empty message gets 400 during the debug window, and after the window if no message was sent in the window', async () => {
  const { runId, executionId } = await failedRun();
  await service.problem(400, 'POST', path(runId), { body: {} });
  await service.problem(400, 'POST', path(runId), { body: { decision: 'approve' } });
  await service.problem(404, 'POST', path(runId), { body: { message: 'a' }, key: service.otherKey });
  await service.problem(400, 'POST', `/agent/runs/${runId}/cancel`);
  await service.problem(400, 'POST', `/agent/runs/${runId}/interrupt`);
  expect(await phaseOf(executionId)).toBe('idle');
  await endSandbox(service.deps.executionDeps, executionId, { kind: 'lost', message: 'Lost.' });
  await service.problem(400, 'POST', path(runId), { body: {} });
  expect(await read(runId)).toMatchObject(failedItem);
});

test('a run loses only the debug conversation if its sandbox is lost in the window', async () => {
  const { runId, executionId } = await failedRun();
  await say(runId, 'what is there?');
  await endSandbox(service.deps.executionDeps, executionId, { kind: 'lost', message: 'Lost.' });
  expect(await phaseOf(executionId)).toBe('ended');
  expect(await read(runId)).toMatchObject({ ...failedItem, is_sandbox_running: false });
  await say(runId, 'again');
  expect((await read(runId)).state).toBe('QUEUED');
  const next = await service.claimRun(runId);
  expect(await finish(next.runToken, 1, setupFailed)).toBe('wait');
  expect(await phaseOf(next.executionId), 'the message of the lost sandbox begins a turn').toBe('running');
  expect(await inbox(next.runToken)).toMatchObject([{ message: 'what is there?', debug: true }]);
});

test('the end of the debug window ends the sandbox, an interrupt ends the turn, and both leave the run unchanged', async () => {
  const { runId, runToken, executionId } = await failedRun();
  await say(runId, 'sleep');
  const [item] = await inbox(runToken);
  expect((await service.request('POST', `/agent/runs/${runId}/interrupt`)).status).toBe(200);
  expect(await inbox(runToken, Number(item?.position))).toEqual([{ type: 'interrupt', turn: 2 }]);
  await service.deps.db.query(
    "UPDATE executions SET deadline_at = clock_timestamp() - interval '1 second' WHERE id = $1",
    [executionId],
  );
  await reconcile(service.deps.executionDeps);
  expect(await inbox(runToken)).toEqual([{ type: 'cancel' }]);
  expect(await finish(runToken, 2)).toBe('leave');
  expect(await read(runId)).toMatchObject(failedItem);
});

describe('a question of the agent in the debug window', () => {
  const request = (request_id: string) => ({
    ...{ request_id, kind: 'permission', title: 'cat log', resume: 'x' },
    action: { id: 'a1', name: 'shell', category: 'command', input: { command: 'cat log' }, fingerprint: 'f1' },
  });
  const answer = (runId: string, body: object) => service.request('POST', path(runId), { body });

  /** Starts a run whose setup fails and whose agent then asks a question in the debug window. */
  async function asking(minutes?: number) {
    const run = await failedRun(minutes);
    await say(run.runId, 'what is there?');
    const [item] = await inbox(run.runToken);
    await send(run.runToken, 1, { type: 'follow_up_taken', follow_up_id: item?.id });
    await send(run.runToken, 2, { type: 'turn_started', step_id: 's1', prompt: 'what is there?' });
    await send(run.runToken, 3, { type: 'blocked', step_id: 's1', request: request('q1') });
    return { ...run, position: Number(item?.position) };
  }

  test('is shown while the run stays FAILED and the sandbox waits', async () => {
    const { runId, executionId } = await asking(3);
    const item = await read(runId);
    expect(item).toMatchObject({
      ...failedItem,
      is_sandbox_running: true,
      blocked_on: { request_id: 'q1', title: 'cat log', asked_at: at },
    });
    expect(item.blocked_on).not.toHaveProperty('resume');
    expect(minutesLeft(item)).toBeGreaterThan(2);
    expect(minutesLeft(item)).toBeLessThan(3.1);
    expect(await phaseOf(executionId)).toBe('idle');
    const listed = await service.request<{ runs: (Item & { run_id: string })[] }>('GET', '/agent/runs?limit=500');
    expect(listed.body.runs.find(({ run_id }) => run_id === runId)?.blocked_on).toEqual(item.blocked_on);
    const timeline = await service.request<{ events: object[] }>('GET', `/agent/runs/${runId}/timeline`);
    expect(timeline.body.events.at(-1)).toMatchObject({
      event_type: 'oz_run_blocked',
      payload: { message: expect.stringContaining('cat log'), request: { request_id: 'q1' } },
    });
  });

  test('refuses an interrupt, because the decision would be unknown', async () => {
    const { runId } = await asking();
    const { detail } = await service.problem(400, 'POST', `/agent/runs/${runId}/interrupt`);
    expect(detail).toContain('waits for an answer');
    expect((await read(runId)).blocked_on?.request_id).toBe('q1');
  });

  test('is answered once, by the next follow-up, and the turn continues', async () => {
    const { runId, runToken, executionId, position } = await asking();
    await service.problem(400, 'POST', path(runId), { body: { decision: 'approve', request_id: 'q0' } });
    await service.problem(400, 'POST', path(runId), { body: {} });
    await service.problem(404, 'POST', path(runId), { body: { decision: 'approve' }, key: service.otherKey });
    expect((await answer(runId, { decision: 'approve', request_id: 'q1' })).status).toBe(200);
    const during = await read(runId);
    expect(during).toMatchObject(failedItem);
    expect(during).not.toHaveProperty('blocked_on');
    expect(await phaseOf(executionId)).toBe('running');
    expect(await inbox(runToken, position)).toMatchObject([{ answers: 'q1', decision: 'approve', debug: true }]);
    await service.problem(400, 'POST', path(runId), { body: { decision: 'deny' } });
    await send(runToken, 4, { type: 'blocked', step_id: 's1', request: request('q2') });
    expect((await read(runId)).blocked_on?.request_id).toBe('q2');
    expect(await finish(runToken, 2), 'a turn that ends leaves its question open').toBe('wait');
    expect((await read(runId)).blocked_on?.request_id).toBe('q2');
  });

  test('ends with the sandbox, and a late decision does not reach the next sandbox', async () => {
    const gone = await asking();
    await service.deps.db.query(
      "UPDATE executions SET idle_until = clock_timestamp() - interval '1 second' WHERE id = $1",
      [gone.executionId],
    );
    await reconcile(service.deps.executionDeps);
    expect(await read(gone.runId)).not.toHaveProperty('blocked_on');
    await service.problem(400, 'POST', path(gone.runId), { body: { decision: 'approve' } });
    const late = await asking();
    expect((await answer(late.runId, { decision: 'approve', message: 'look' })).status).toBe(200);
    await endSandbox(service.deps.executionDeps, late.executionId, { kind: 'lost', message: 'Lost.' });
    await say(late.runId, 'again');
    const next = await service.claimRun(late.runId);
    const task = await service.request('POST', '/harness-support/resolve-prompt', { key: next.runToken, body: {} });
    expect(task.body).toMatchObject({ prompt: 'First.\n\nlook\n\nagain' });
    expect(task.body).not.toHaveProperty('decision');
  });

  test("still waits for its answer if the environment's debug time becomes 0, and is ignored after the run has continued", async () => {
    const { runId, runToken, executionId } = await failedRun();
    await service.deps.db.query(
      `UPDATE environments SET config = config || '{"failure_session_retention_minutes": 0}'
       WHERE uid = (SELECT environment_id FROM runs WHERE id = $1)`,
      [runId],
    );
    await send(runToken, 1, { type: 'blocked', step_id: 's1', request: request('q1') });
    expect(await read(runId), 'no turn is played').not.toHaveProperty('blocked_on');
    await say(runId, 'what is there?');
    await send(runToken, 2, { type: 'blocked', step_id: 's1', request: request('q1') });
    expect(await phaseOf(executionId)).toBe('idle');
    expect(minutesLeft(await read(runId))).toBeGreaterThan(9);
  });
});

test('a delete of the run stops the sandbox that waits in the debug window', async () => {
  const { runId, executionId } = await failedRun();
  await service.problem(409, 'DELETE', `/agent/runs/${runId}`);
  expect(await phaseOf(executionId)).toBe('stopping');
});
