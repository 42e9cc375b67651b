/** Runs whose machine is lost in the middle of a turn. */
import { randomBytes } from 'node:crypto';
import { request as httpRequest } from 'node:http';
import type { AgentEventBody, AgentTask } from '@runyard/contract/agent-protocol';
import type { TimelineEvent } from '@runyard/contract/timeline';
import { afterEach, describe, expect, test } from 'vitest';
import { openTestService } from '../../../test/service.ts';
import { adoptExecutions } from '../../executions/lease/adopt.ts';
import type { Assignment } from '../../executions/queue/assign.ts';
import { reconcile } from '../../executions/reconcile/reconcile.ts';
import { endSandbox, type SandboxEnd } from '../../executions/reconcile/sandbox-end.ts';

const service = await openTestService({ env: { RUNYARD_WORKSPACE_MB: '1', RUNYARD_CHECKPOINT_SECONDS: '60' } });
const { executionDeps } = service.deps;
const db = service.deps.db;

afterEach(async () => {
  // No run waits for the next test.
  await db.query("UPDATE executions SET phase = 'ended' WHERE phase = 'queued'", []);
});

const resumes = { config: { on_worker_loss: 'resume' } };
const lostKind: SandboxEnd = { kind: 'lost', message: 'The machine burnt.' };
const at = '2026-01-02T03:04:05.000Z';

const stateOf = async (runId: string) =>
  (await service.request<{ state: string; status_message?: { message: string } }>('GET', `/agent/runs/${runId}`)).body;
const timelineOf = async (runId: string) =>
  (await service.request<{ events: TimelineEvent[] }>('GET', `/agent/runs/${runId}/timeline`)).body.events;
const taskOf = async ({ runToken }: Assignment) =>
  (await service.request<AgentTask>('POST', '/harness-support/resolve-prompt', { key: runToken, body: {} })).body;

/** An agent of the assignment, which has begun its first turn. */
async function begin(assignment: Assignment) {
  let seq = 0;
  const key = assignment.runToken;
  const say = async (...events: AgentEventBody[]) => {
    const numbered = events.map((event) => ({ seq: ++seq, occurred_at: at, ...event }));
    return (await service.request('POST', '/harness-support/events', { key, body: { events: numbered } })).status;
  };
  const text = (words: string): AgentEventBody => ({
    type: 'text',
    step_id: 's',
    message_id: words,
    role: 'assistant',
    text: words,
  });
  const put = async (number: number, bytes: Buffer, more = '') =>
    (
      await service.request('PUT', `/harness-support/workspace?turn=1&checkpoint=${number}${more}`, {
        key,
        raw: new Uint8Array(bytes),
        headers: { 'content-type': 'application/octet-stream' },
      })
    ).status;
  const mark = (number: number, more: object = {}) =>
    say({ type: 'checkpoint', number, state: 'begun', turn: 1, ...more });
  await taskOf(assignment);
  await say(
    { type: 'agent_started', harness: 'oz', model_id: 'runbook' },
    { type: 'turn_started', step_id: 's', prompt: 'Do it.' },
  );
  return { ...assignment, say: async (words: string) => await say(text(words)), report: say, put, mark };
}

const beginRun = async (body: object = resumes) => await begin(await service.startExecution({ ...body }));
const lose = (assignment: Assignment, end = lostKind) => endSandbox(executionDeps, assignment.executionId, end);
const blobsNow = async () => {
  const keys: string[] = [];
  for await (const { key } of service.deps.blobs.list()) if (key.startsWith('workspaces/')) keys.push(key);
  return keys.length;
};
/** Assigns the next execution of the run without its pause. */
async function next(runId: string): Promise<Assignment> {
  await db.query("UPDATE executions SET available_at = now() WHERE run_id = $1 AND phase = 'queued'", [runId]);
  return await service.claimRun(runId);
}
/** A later checkpoint must not wait for the least time between two. */
const letTimePass = (assignment: Assignment) =>
  db.query("UPDATE executions SET workspace_at = workspace_at - interval '1 hour' WHERE id = $1", [
    assignment.executionId,
  ]);

test('resumes the turn from the last checkpoint, and refuses the lost sandbox', async () => {
  const first = await beginRun();
  expect(await taskOf(first)).toMatchObject({ checkpoint_seconds: 60 });
  await first.say('before the checkpoint');
  await first.mark(1, { done_blocks: 2 });
  await first.say('after the checkpoint');
  expect(await first.put(1, Buffer.from('files'), '&session_id=x')).toBe(200);
  await lose(first);
  expect(await stateOf(first.runId)).toMatchObject({ state: 'QUEUED' });
  expect(await first.say('from the dead')).toBe(401);
  const adopted = { connectionId: randomId(), instanceId: 'i', executionIds: [first.executionId], leaseSeconds: 60 };
  expect(await adoptExecutions(db, adopted)).toEqual([]);

  const second = await next(first.runId);
  const task = await taskOf(second);
  expect(task).toMatchObject({
    prompt: 'Do it',
    execution_number: 2,
    workspace: { kind: 'archive', execution_number: 1, turn: 1, size_bytes: 5, session_id: 'x' },
    loss: { message: 'The machine burnt.', kept_at: expect.stringMatching(/Z$/), done_blocks: 2 },
  });
  const before = task.conversation?.kind === 'text' ? task.conversation.text : '';
  expect(before).toContain('before the checkpoint');
  expect(before).not.toContain('after the checkpoint');
  expect(task.loss?.record).toContain('after the checkpoint');
  expect(task.loss?.record).not.toContain('before the checkpoint');
  const events = await timelineOf(first.runId);
  expect(events.map(({ event_type }) => event_type)).toEqual(
    expect.arrayContaining(['vm_shutdown', 'execution_resumed']),
  );
  expect(events.find(({ event_type }) => event_type === 'execution_resumed')).toMatchObject({
    execution_id: 1,
    payload: { reason: 'The machine burnt.', next_execution_id: 2 },
  });
});

const randomId = () => '00000000-0000-7000-8000-000000000001';

test('begins the turn again where no checkpoint was kept', async () => {
  const first = await beginRun();
  await first.say('lost words');
  await lose(first);
  const task = await taskOf(await next(first.runId));
  expect(task).toMatchObject({ prompt: 'Do it', workspace: { kind: 'missing' }, loss: { done_blocks: 0 } });
  expect(task.loss).not.toHaveProperty('kept_at');
  expect(task.loss?.record).toContain('lost words');
  expect(task).not.toHaveProperty('conversation');
});

test.each([
  ['a run without the policy', {}, lostKind, 'agent_process_failed'],
  ['an agent that ended by itself', resumes, { kind: 'exited', message: 'It crashed.' }, 'agent_process_failed'],
] as const)('ends %s in ERROR', async (_, body, end, error_code) => {
  const first = await beginRun(body);
  await lose(first, end);
  expect(await stateOf(first.runId)).toMatchObject({ state: 'ERROR', status_message: { error_code } });
});

test('resumes when the lease is over, and not earlier', async () => {
  const first = await beginRun();
  await db.query('INSERT INTO service_instances (id) VALUES ($1) ON CONFLICT DO NOTHING', [randomId()]);
  await reconcile(executionDeps);
  expect(await stateOf(first.runId)).toMatchObject({ state: 'INPROGRESS' });
  await db.query("UPDATE executions SET lease_until = now() - interval '1 second' WHERE id = $1", [first.executionId]);
  await Promise.all([reconcile(executionDeps), reconcile(executionDeps)]);
  expect(await stateOf(first.runId)).toMatchObject({ state: 'QUEUED' });
  const resumed = (await timelineOf(first.runId)).filter(({ event_type }) => event_type === 'execution_resumed');
  expect(resumed).toHaveLength(1);
});

test('resumes a turn three times, each time from its newest checkpoint, and then says why not again', async () => {
  const blobs = await blobsNow();
  let agent = await beginRun();
  for (const round of [1, 2, 3]) {
    await agent.mark(1);
    expect(await agent.put(1, Buffer.alloc(round))).toBe(200);
    await lose(agent);
    agent = await begin(await next(agent.runId));
    expect(await taskOf(agent)).toMatchObject({ workspace: { execution_number: round, size_bytes: round } });
  }
  expect((await blobsNow()) - blobs, 'archives that nothing restores are deleted').toBeLessThanOrEqual(2);
  await lose(agent);
  const run = await stateOf(agent.runId);
  expect(run.state).toBe('ERROR');
  expect(run.status_message?.message).toContain('resumed 3 times');
});

test('counts the resumes of a turn anew when a turn has ended', async () => {
  const first = await beginRun();
  await lose(first);
  const second = await begin(await next(first.runId));
  await service.request('POST', `/agent/runs/${first.runId}/followups`, { body: { message: 'And then?' } });
  const report = { turn: 1, success: true, summary: '' };
  await service.request('POST', '/harness-support/finish-task', { key: second.runToken, body: report });
  await lose(second);
  const third = await next(first.runId);
  expect(await taskOf(third), 'the follow-up that no agent had taken begins the turn').toMatchObject({
    prompt: 'And then?',
    conversation: { kind: 'text' },
  });
  const [row] = await db.query<{ resume_count: number }>('SELECT resume_count FROM executions WHERE id = $1', [
    third.executionId,
  ]);
  expect(row?.resume_count).toBe(1);
});

test('gives the follow-up of the lost turn to the next agent, and none of an ended turn', async () => {
  const first = await beginRun();
  const followUp = async (message: string) => {
    await service.request('POST', `/agent/runs/${first.runId}/followups`, { body: { message } });
    const inbox = await service.request<{ items: { id: string }[] }>('GET', '/harness-support/inbox', {
      key: first.runToken,
    });
    await first.report({ type: 'follow_up_taken', follow_up_id: inbox.body.items.at(-1)?.id ?? '' });
  };
  const finish = (turn: number) =>
    service.request('POST', '/harness-support/finish-task', {
      key: first.runToken,
      body: { turn, success: true, summary: '' },
    });
  await finish(1);
  await followUp('two');
  await finish(2);
  await followUp('three');
  await lose(first);
  expect((await taskOf(await next(first.runId))).prompt).toBe('three');
});

describe('while no machine has the run', () => {
  test('a cancel ends it', async () => {
    const first = await beginRun();
    await lose(first);
    expect((await service.request('POST', `/agent/runs/${first.runId}/cancel`)).status).toBe(200);
    expect(await stateOf(first.runId)).toMatchObject({ state: 'CANCELLED' });
  });

  test('a follow-up waits, and joins the message of the turn', async () => {
    const first = await beginRun();
    await lose(first);
    await service.request('POST', `/agent/runs/${first.runId}/followups`, { body: { message: 'Hurry.' } });
    expect((await taskOf(await next(first.runId))).prompt).toBe('Do it\n\nHurry.');
  });

  test('a question stays open, and its answer begins the next execution', async () => {
    const first = await beginRun();
    const request = { request_id: `q-${first.runId}`, kind: 'question', title: 'Which?' } as const;
    await first.report({ type: 'blocked', step_id: 's', request });
    await lose(first);
    expect(await stateOf(first.runId)).toMatchObject({ state: 'BLOCKED' });
    await service.request('POST', `/agent/runs/${first.runId}/followups`, { body: { message: 'The red one.' } });
    const task = await taskOf(await next(first.runId));
    expect(task).toMatchObject({ decision: { message: 'The red one.' } });
    expect(task).not.toHaveProperty('loss');
  });

  test('the time until the loss was noticed is no work of it', async () => {
    const first = await beginRun({ config: { on_worker_loss: 'resume', max_duration_minutes: 10 } });
    await db.query(
      `UPDATE executions SET started_at = now() - interval '9 minutes', agent_seen_at = now() - interval '8 minutes' WHERE id = $1`,
      [first.executionId],
    );
    await lose(first);
    const second = await begin(await next(first.runId));
    const [row] = await db.query<{ left: number }>(
      'SELECT extract(epoch FROM deadline_at - clock_timestamp())::float8 AS left FROM executions WHERE id = $1',
      [second.executionId],
    );
    expect(row?.left).toBeGreaterThan(8.5 * 60);
  });
});

describe('a checkpoint', () => {
  test('that was cut off replaces nothing', async () => {
    const first = await beginRun();
    await first.mark(1);
    await first.put(1, Buffer.from('whole'));
    await letTimePass(first);
    await first.mark(2);
    const blobs = await blobsNow();
    await new Promise<void>((resolve) => {
      const put = httpRequest(`${service.baseUrl}/api/v1/harness-support/workspace?turn=1&checkpoint=2`, {
        method: 'PUT',
        headers: { authorization: `Bearer ${first.runToken}`, 'transfer-encoding': 'chunked' },
      });
      put.on('error', () => resolve());
      put.write(randomBytes(100_000), () => put.destroy(new Error('cut')));
    });
    await expect.poll(() => db.query('SELECT FROM upload_leases', [])).toEqual([]);
    await lose(first);
    const task = await taskOf(await next(first.runId));
    expect(task).toMatchObject({ workspace: { kind: 'archive', size_bytes: 5 } });
    expect(await blobsNow()).toBe(blobs);
  });

  test('is refused where it was not begun, for a run that does not resume, and too soon after another', async () => {
    const first = await beginRun();
    expect(await first.put(1, Buffer.from('a'))).toBe(409);
    await first.mark(1);
    expect(await first.put(2, Buffer.from('a'))).toBe(409);
    expect(await first.put(1, randomBytes(1024 * 1024 + 1))).toBe(413);
    expect(await first.put(1, Buffer.from('a'))).toBe(200);
    await first.mark(2);
    expect(await first.put(2, Buffer.from('b'))).toBe(429);
    await letTimePass(first);
    expect(await first.put(2, Buffer.from('b'))).toBe(200);
    const other = await beginRun({});
    expect(await taskOf(other)).not.toHaveProperty('checkpoint_seconds');
    await other.mark(1);
    expect(await other.put(1, Buffer.from('a'))).toBe(409);
  });

  test('of unchanged files moves the last archive to its place in the conversation', async () => {
    const first = await beginRun();
    await first.mark(1);
    await first.put(1, Buffer.from('files'));
    await first.say('changed no file');
    await first.mark(2, { done_blocks: 1 });
    await first.report({ type: 'checkpoint', number: 2, state: 'unchanged', turn: 1 });
    await lose(first);
    const task = await taskOf(await next(first.runId));
    expect(task).toMatchObject({ workspace: { kind: 'archive' }, loss: { done_blocks: 1 } });
    expect(task.loss).not.toHaveProperty('record');
  });
});
