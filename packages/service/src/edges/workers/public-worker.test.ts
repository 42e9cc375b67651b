/** A public worker (oz-agent-worker) sends no hello, names only the run, and may run its tasks on other machines. */
import { randomUUIDv7 } from 'node:crypto';
import type { RunItem } from '@runyard/contract/runs/runs';
import type { TimelineEvent } from '@runyard/contract/runs/timeline';
import { type ServiceMessage, WorkerMessage } from '@runyard/contract/workers/worker-protocol';
import { beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { closeAtEnd } from '../../../../../test/support/close-at-end.ts';
import { insertWorkerKey, insertWorkerPool } from '../../../test/key.ts';
import { openTestService } from '../../../test/service.ts';
import { renewLeases } from '../../runs/executions/lease/connection-rows.ts';
import { reconcile } from '../../runs/executions/reconcile/reconcile.ts';
import { type HubConnection, openHub } from './hub.ts';

const service = await openTestService();
const { db, executionDeps } = service.deps;
const hub = closeAtEnd(openHub(executionDeps, { serviceInstanceId: randomUUIDv7() }));
const sent: ServiceMessage[] = [];
let connect: () => Promise<HubConnection>;
let worker: HubConnection;
let say: (
  type: 'task_claimed' | 'task_completed' | 'task_failed' | 'execution_closed',
  runId: string,
  more?: object,
) => Promise<void>;

beforeAll(async () => {
  const { teamId } = service;
  await insertWorkerPool(db, teamId, 'box');
  const keyId = await insertWorkerKey(db, teamId);
  const send = (message: ServiceMessage): void => void sent.push(message);
  connect = () => hub.connect({ workerId: 'box', teamId, keyId, send, end: () => {} });
  worker = await connect();
  say = (type, task_id, more = {}) =>
    worker.message(WorkerMessage.parse({ type, data: { task_id, worker_id: 'box', message: 'text', ...more } }));
  // A worker whose first message is not a hello counts as a public worker.
  await say('task_failed', 'no run');
});
beforeEach(() => void sent.splice(0));

const assignmentsOf = (runId: string) =>
  sent.flatMap(({ type, data }) => (type === 'task_assignment' && data.task_id === runId ? [data] : []));
const ordersOf = (runId: string) =>
  sent.filter(({ type, data }) => type === 'task_cancellation' && data.task_id === runId).length;
const runOf = async (runId: string) => (await service.request<RunItem>('GET', `/agent/runs/${runId}`)).body;
const eventsOf = async (runId: string) =>
  (await service.request<{ events: TimelineEvent[] }>('GET', `/agent/runs/${runId}/timeline`)).body.events;
const executionsOf = (runId: string) =>
  db.query<{ id: string; phase: string; connection_id: string }>(
    'SELECT id, phase, connection_id FROM executions WHERE run_id = $1 ORDER BY number',
    [runId],
  );
const set = (executionId: string, assignments: string) =>
  db.query(`UPDATE executions SET ${assignments} WHERE id = $1`, [executionId]);
/** Renews the leases of the worker's executions in the same way as a ping, and then runs `reconcile`. */
async function pingAndSweep(executionId: string): Promise<void> {
  const [row] = await db.query<{ connection_id: string }>('SELECT connection_id FROM executions WHERE id = $1', [
    executionId,
  ]);
  await renewLeases(db, row?.connection_id ?? '', executionDeps.timing);
  await reconcile(executionDeps);
}

/** Creates a run that the worker has claimed. With `begins`, its first turn is in progress. */
async function claimed({ begins = false, config = {} }: { begins?: boolean; config?: object } = {}) {
  const runId = await service.newRun({ config: { worker_host: 'box', ...config } });
  await hub.dispatch();
  await vi.waitFor(() => expect(assignmentsOf(runId)).toHaveLength(1), { timeout: 60_000 });
  const { execution_id: executionId, env_vars } = assignmentsOf(runId)[0] ?? expect.fail('no assignment');
  const key = env_vars?.RUNYARD_RUN_TOKEN ?? '';
  await say('task_claimed', runId);
  const agent = (path: string, body: object) => service.request('POST', `/harness-support/${path}`, { key, body });
  if (begins) {
    const started = { type: 'agent_started', harness: 'oz', model_id: 'runbook' };
    await agent('events', { events: [{ seq: 1, occurred_at: '2026-01-02T03:04:05.000Z', ...started }] });
  }
  return { runId, executionId, agent };
}

const stopped = { failure_reason: 'graceful_shutdown', message: 'The worker was stopped.' };
const resume = { on_worker_loss: 'resume' };
test.each([
  ['leads to a retry of a run whose agent had not begun', false, {}, 'QUEUED', 'execution_retried'],
  ['leads to a resume of a run with on_worker_loss resume', true, resume, 'QUEUED', 'execution_resumed'],
  ['leads to a retryable ERROR of a run without on_worker_loss', true, {}, 'ERROR', 'oz_run_errored'],
] as const)('SIGTERM of a public worker %s', async (_, begins, config, state, event) => {
  const { runId } = await claimed({ begins, config });
  await say('task_failed', runId, stopped);
  const run = await runOf(runId);
  expect(run.state).toBe(state);
  expect(run.status_message).toMatchObject({ retryable: true, error_code: 'resource_unavailable' });
  expect((await eventsOf(runId)).map(({ event_type }) => event_type)).toContain(event);
  // The processes of the agent have some seconds to save its files. No second agent works during this time.
  const [stopping] = await executionsOf(runId);
  expect(stopping?.phase).toBe('stopping');
  // A worker that replaces this worker does not extend this time.
  await worker.closed();
  worker = await connect();
  await say('task_failed', 'no run');
  await set(
    stopping?.id ?? '',
    "stop_deadline = stop_deadline - interval '31 seconds', lease_until = lease_until - interval '31 seconds'",
  );
  await reconcile(executionDeps);
  expect((await executionsOf(runId))[0]?.phase).toBe('ended');
});

test('a public worker gets the run token as the key with which it reports its setup steps', async () => {
  const { runId } = await claimed();
  const { env_vars } = assignmentsOf(runId)[0] ?? expect.fail('no assignment');
  expect(env_vars?.WARP_API_KEY).toBe(env_vars?.RUNYARD_RUN_TOKEN);
  const body = { event_uuid: 'u', event_name: 'setup_worker_job_create', timestamp: '2026-10-06T10:00:00Z' };
  const key = env_vars?.WARP_API_KEY ?? '';
  const headers = { 'x-warp-cloud-agent-id': runId };
  expect((await service.request('POST', `/agent/runs/${runId}/client-events`, { key, body, headers })).status).toBe(
    202,
  );
});

test('a closed execution proves that its sandbox is gone, so the next execution begins at once', async () => {
  const { runId, executionId } = await claimed({ begins: true, config: resume });
  await say('execution_closed', runId, { execution_id: executionId });
  expect((await executionsOf(runId))[0]?.phase, 'no end was ordered').toBe('running');
  await say('task_failed', runId, { ...stopped, execution_id: executionId });
  expect((await executionsOf(runId))[0]?.phase, 'the agent may still save files').toBe('stopping');
  for (const _ of ['once', 'repeated']) await say('execution_closed', runId, { execution_id: executionId });
  expect((await executionsOf(runId)).map(({ phase }) => phase)).toEqual(['ended', 'queued']);
  expect((await runOf(runId)).state).toBe('QUEUED');
  const ends = (await eventsOf(runId)).filter(({ event_type }) => event_type === 'vm_shutdown');
  expect(ends).toMatchObject([{ payload: { kind: 'stopped', message: stopped.message } }]);
});

test('a cancellation names the execution, and only the worker that holds the execution can close it', async () => {
  const { runId, executionId } = await claimed({ begins: true });
  await set(executionId, "phase = 'stopping', stop_reason = 'ordered', stop_deadline = now() + interval '1 minute'");
  await hub.sendStopOrders();
  const closed = { task_id: runId, execution_id: executionId };
  expect(sent.find(({ type }) => type === 'task_cancellation')?.data).toMatchObject(closed);
  const keyId = await insertWorkerKey(db, service.teamId);
  await insertWorkerPool(db, service.teamId, 'stranger');
  const add = { teamId: service.teamId, keyId, send: () => {}, end: () => {} };
  for (const workerId of ['stranger', 'box']) {
    const other = await hub.connect({ workerId, ...add });
    await other.message({ type: 'execution_closed', data: closed });
    for (const id of ['no uuid', randomUUIDv7()])
      await other.message({ type: 'execution_closed', data: { task_id: runId, execution_id: id } });
    await other.closed();
    expect((await executionsOf(runId))[0]?.phase).toBe('stopping');
  }
  await say('execution_closed', runId, { execution_id: executionId });
  expect((await executionsOf(runId))[0]?.phase).toBe('ended');
  expect((await runOf(runId)).state, 'it says nothing about the run').toBe('INPROGRESS');
});

test('the timeline shows the cause and the Kubernetes objects of a failure, without secrets and unknown members', async () => {
  const { runId } = await claimed({ begins: true });
  const [secret = ''] = executionDeps.secrets;
  await say('task_failed', runId, {
    failure_cause: 'oom',
    failure_details: {
      kubernetes: {
        observed_at: '2026-10-06T10:00:00Z',
        pod: { name: `pod ${secret}`, phase: 'Failed', reason: 7, conditions: [{ type: 'Ready', log: secret }] },
        container: { name: 'x'.repeat(1000), termination_reason: 'OOMKilled', raw_exit_code: 137 },
        events: Array.from({ length: 100 }, () => ({ type: 'Warning', reason: 'Killing', count: 1 })),
        later: secret,
      },
    },
  });
  const payload = (await eventsOf(runId)).find(({ event_type }) => event_type === 'vm_shutdown')?.payload;
  expect(payload).toMatchObject({
    kind: 'exited',
    cause: 'oom',
    kubernetes: {
      pod: { name: 'pod «redacted»', phase: 'Failed', conditions: [{ type: 'Ready' }] },
      container: { termination_reason: 'OOMKilled', raw_exit_code: 137 },
    },
  });
  expect(JSON.stringify(payload)).not.toContain(secret);
  expect(JSON.stringify(payload).length).toBeLessThan(3000);
});

test.each([
  ['eviction', 'QUEUED'],
  ['operator_shutdown', 'QUEUED'],
  ['oom', 'ERROR'],
  ['a later word', 'ERROR'],
])('a failure with the cause %s leaves a run with on_worker_loss resume in the state %s', async (cause, state) => {
  const { runId } = await claimed({ begins: true, config: resume });
  await say('task_failed', runId, { failure_cause: cause, failure_details: { kubernetes: 'no object' } });
  expect((await runOf(runId)).state).toBe(state);
});

test('a run whose agent failed by itself ends in ERROR, even with on_worker_loss resume', async () => {
  const { runId } = await claimed({ begins: true, config: resume });
  await say('task_failed', runId, { failure_reason: 'agent_invocation', exit_code: 1 });
  expect(await runOf(runId)).toMatchObject({ state: 'ERROR', status_message: { error_code: 'agent_process_failed' } });
});

test('a task that no agent has begun within 15 minutes is tried again, although the worker stays connected', async () => {
  const { runId, executionId } = await claimed();
  await set(executionId, "claimed_at = now() - interval '14 minutes', lease_until = now() - interval '1 second'");
  await pingAndSweep(executionId);
  expect((await runOf(runId)).state).toBe('CLAIMED');

  await set(executionId, "claimed_at = now() - interval '16 minutes', lease_until = now() - interval '1 second'");
  await pingAndSweep(executionId);
  const run = await runOf(runId);
  expect(run.state).toBe('QUEUED');
  expect((await eventsOf(runId)).at(-1)?.payload?.reason).toMatch(/no agent called the service within 15 min .* box /);
  await hub.sendStopOrders();
  expect(ordersOf(runId)).toBe(1);

  // A worker that handed the task to another machine does not answer the order.
  await set(executionId, "stop_deadline = now() - interval '1 second'");
  await pingAndSweep(executionId);
  expect((await executionsOf(runId)).map(({ phase }) => phase)).toEqual(['ended', 'queued']);
  await db.query("UPDATE executions SET available_at = now() WHERE run_id = $1 AND phase = 'queued'", [runId]);
  await hub.dispatch();
  await vi.waitFor(() => expect(assignmentsOf(runId)).toHaveLength(2), { timeout: 60_000 });
  await say('task_completed', runId, { task_state: 'CANCELLED' });
  await say('task_claimed', runId);
  expect((await runOf(runId)).state, 'the late answer was about the first execution').toBe('CLAIMED');
});

test('a run whose agent is silent for three minutes ends, but a run whose agent called the service does not', async () => {
  const { runId, executionId } = await claimed({ begins: true });
  await set(executionId, "agent_seen_at = now() - interval '2 minutes', lease_until = now() - interval '1 second'");
  await pingAndSweep(executionId);
  expect((await runOf(runId)).state).toBe('INPROGRESS');
  await set(executionId, "agent_seen_at = now() - interval '4 minutes', lease_until = now() - interval '1 second'");
  await pingAndSweep(executionId);
  expect(await runOf(runId)).toMatchObject({
    state: 'ERROR',
    status_message: { message: expect.stringMatching(/sent nothing for 3 min, although worker box is connected/) },
  });
});

test("the connection of Runyard's own worker renews the lease of a silent agent", async () => {
  const { runId, executionId } = await claimed();
  await set(
    executionId,
    "worker_instance = 'one', claimed_at = now() - interval '1 day', lease_until = now() - interval '1 second'",
  );
  await pingAndSweep(executionId);
  expect((await runOf(runId)).state).toBe('CLAIMED');
});

const exited = { reason: 'the command ended', exited: true };
test.each([
  ['before its agent began, and retries the run', false, false, 'QUEUED'],
  ['in the middle of a turn, and the run in ERROR', true, false, 'ERROR'],
  ['after its turn, and leaves the run as it is', true, true, 'SUCCEEDED'],
])('the report that the agent exited ends an execution %s', async (_, begins, finishes, state) => {
  const { runId, executionId, agent } = await claimed({ begins });
  if (finishes) await agent('finish-task', { success: true, summary: '' });
  expect((await agent('report-shutdown', exited)).status).toBe(200);
  expect((await runOf(runId)).state).toBe(state);
  expect((await agent('report-shutdown', exited)).status, 'it may be repeated').toBe(200);
  // A report with the run token does not prove that the sandbox has ended.
  await hub.sendStopOrders();
  expect(ordersOf(runId)).toBe(1);
  await set(
    executionId,
    "stop_deadline = stop_deadline - interval '6 seconds', lease_until = now() - interval '1 second'",
  );
  await pingAndSweep(executionId);
  expect((await executionsOf(runId))[0]?.phase).toBe('ended');
  expect((await eventsOf(runId)).find(({ event_type }) => event_type === 'vm_shutdown')?.payload).toMatchObject({
    kind: 'exited',
    message: 'The program that started the agent reported its exit: the command ended',
  });
  expect((await agent('report-shutdown', exited)).status).toBe(401);
});

test.each([
  ["of Runyard's own worker", exited, "worker_instance = 'one'"],
  ['of a public worker without a report of its exit', { reason: 'terminated' }, 'worker_instance = NULL'],
])('a last call of the agent changes no execution %s', async (_, body, worker) => {
  const { runId, executionId, agent } = await claimed({ begins: true });
  await set(executionId, worker);
  expect((await agent('report-shutdown', body)).status).toBe(200);
  expect((await runOf(runId)).state).toBe('INPROGRESS');
  expect((await executionsOf(runId))[0]?.phase).toBe('running');
});
