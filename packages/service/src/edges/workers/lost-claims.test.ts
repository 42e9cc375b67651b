/** A public worker ignores a second assignment with the same execution id, so an assignment without a claim leads to another execution. */
import { randomUUIDv7 } from 'node:crypto';
import type { RunItem } from '@runyard/contract/runs/runs';
import { type ServiceMessage, WorkerMessage } from '@runyard/contract/workers/worker-protocol';
import { beforeAll, expect, test, vi } from 'vitest';
import { closeAtEnd } from '../../../../../test/support/close-at-end.ts';
import { insertWorkerKey, insertWorkerPool } from '../../../test/key.ts';
import { openTestService } from '../../../test/service.ts';
import { reconcile } from '../../runs/executions/reconcile/reconcile.ts';
import { type HubConnection, openHub } from './hub.ts';

const service = await openTestService();
const { db, executionDeps } = service.deps;
const hub = closeAtEnd(openHub(executionDeps, { serviceInstanceId: randomUUIDv7() }));
const sent: ServiceMessage[] = [];
let connect: () => Promise<HubConnection>;
let worker: HubConnection;

beforeAll(async () => {
  const { teamId } = service;
  await insertWorkerPool(db, teamId, 'box');
  const keyId = await insertWorkerKey(db, teamId);
  const send = (message: ServiceMessage): void => void sent.push(message);
  connect = () => hub.connect({ workerId: 'box', teamId, keyId, send, end: () => {} });
  worker = await connect();
  // A worker whose first message is not a hello counts as a public worker.
  await say('task_failed', 'no run');
});

const say = (type: string, task_id: string, more = {}) =>
  worker.message(WorkerMessage.parse({ type, data: { task_id, worker_id: 'box', message: 'text', ...more } }));
const runOf = async (runId: string) => (await service.request<RunItem>('GET', `/agent/runs/${runId}`)).body;
const executionsAssigned = (runId: string) =>
  sent.flatMap(({ type, data }) => (type === 'task_assignment' && data.task_id === runId ? [data.execution_id] : []));
async function untilAssigned(runId: string, times: number): Promise<string> {
  await hub.dispatch();
  await vi.waitFor(() => expect(executionsAssigned(runId)).toHaveLength(times), { timeout: 60_000 });
  return executionsAssigned(runId).at(-1) ?? '';
}

async function loseConnection(): Promise<void> {
  await worker.closed();
  worker = await connect();
}
async function passDeadline(executionId: string): Promise<void> {
  await db.query("UPDATE executions SET claim_deadline = now() - interval '1 second' WHERE id = $1", [executionId]);
  await reconcile(executionDeps);
}

test.each([
  ['the connection was lost before the claim arrived', loseConnection],
  ['the claim did not arrive in time', passDeadline],
])('if %s, the next try is another execution, and the worker ends the first one', async (_, lose) => {
  const runId = await service.newRun({ config: { worker_host: 'box' } });
  const first = await untilAssigned(runId, 1);
  await lose(first);
  const message = expect.stringMatching(/worker's claim did not arrive/);
  expect(await runOf(runId)).toMatchObject({ state: 'QUEUED', status_message: { message } });
  // The first message of the new connection gives it the executions of the old one.
  await say('task_failed', 'no run');
  await hub.sendStopOrders();
  expect(sent).toContainEqual({
    type: 'task_cancellation',
    data: { task_id: runId, execution_id: first, grace_ms: expect.any(Number) },
  });
  await say('task_completed', runId, { execution_id: first, task_state: 'CANCELLED' });
  await say('execution_closed', runId, { execution_id: first });
  await db.query("UPDATE executions SET available_at = now() WHERE run_id = $1 AND phase = 'queued'", [runId]);
  expect(await untilAssigned(runId, 2)).not.toBe(first);
  await say('task_claimed', runId);
  expect((await runOf(runId)).state).toBe('CLAIMED');
});
