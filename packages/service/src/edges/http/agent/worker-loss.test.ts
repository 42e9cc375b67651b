/** Tests runs whose machine is lost in the middle of a turn. */
import { describe, expect, test } from 'vitest';
import { openLostMachines } from '../../../../test/lost-machines.ts';
import { adoptExecutions } from '../../../runs/executions/lease/adopt.ts';
import { reconcile } from '../../../runs/executions/reconcile/reconcile.ts';

const { service, resumes, lostKind, stateOf, timelineOf, taskOf, begin, beginRun, lose, blobsNow, next } =
  await openLostMachines();
const { db, executionDeps } = service.deps;

test('the next sandbox resumes the turn from the last checkpoint, and the service refuses requests of the lost sandbox', async () => {
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

test('the next sandbox begins the turn again if no checkpoint was stored', async () => {
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
] as const)('the loss of a sandbox ends %s in ERROR', async (_, body, end, error_code) => {
  const first = await beginRun(body);
  await lose(first, end);
  expect(await stateOf(first.runId)).toMatchObject({ state: 'ERROR', status_message: { error_code } });
});

test('a run resumes when the lease of the lost worker is over, and not earlier', async () => {
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

test('a run resumes a turn three times, each time from the newest checkpoint, and then fails with the reason', async () => {
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

test('the service counts the resumes of each turn separately', async () => {
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

test('the next agent gets the follow-up of the lost turn, but no follow-up of an earlier turn', async () => {
  const first = await beginRun();
  const followUp = async (message: string) => {
    const { body } = await service.request<{ followup_id: string }>('POST', `/agent/runs/${first.runId}/followups`, {
      body: { message },
    });
    await first.report({ type: 'follow_up_taken', follow_up_id: body.followup_id });
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

describe('while a lost run waits for another machine', () => {
  test('a cancel ends the run', async () => {
    const first = await beginRun();
    await lose(first);
    expect((await service.request('POST', `/agent/runs/${first.runId}/cancel`)).status).toBe(200);
    expect(await stateOf(first.runId)).toMatchObject({ state: 'CANCELLED' });
  });

  test('a follow-up waits and is appended to the message of the turn', async () => {
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

  test('the time until the loss was noticed does not count as time of work', async () => {
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
