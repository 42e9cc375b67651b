/**
 * Tests keys of the kind worker, which only connect workers of the hosted pool. The test of the access table calls every route with such a
 * key.
 */
import type { CreateKeyResponse } from '@runyard/contract/team/keys';
import { expect, test, vi } from 'vitest';
import { closeAtEnd } from '../../../../../test/support/close-at-end.ts';
import { joinWorkerPool } from '../../../test/key.ts';
import {
  acceptedWorker,
  connectRawWorker,
  firstAssignment,
  rawHello,
  startTestProcess,
} from '../../../test/process.ts';
import { openTestService } from '../../../test/service.ts';

const service = await openTestService();
const process = closeAtEnd(await startTestProcess(service.deps));

const ofWorker = { name: 'Rack 4', kind: 'worker' };
const make = async (): Promise<CreateKeyResponse> =>
  await service.ok<CreateKeyResponse>('POST', '/keys', { body: ofWorker });

test('an owner or administrator without the key of the operator cannot create a worker key', async () => {
  for (const role of ['owner', 'admin'] as const) {
    const key = await service.newKey({ role });
    const { detail } = await service.problem(403, 'POST', '/keys', { key, body: ofWorker });
    expect(detail).toContain("only the operator's key can create it");
  }
});

test('a worker with a worker key executes runs of all teams until the key is deleted', async () => {
  const made = await make();
  expect(made).toMatchObject({ kind: 'worker', created_by_uid: expect.any(String) });
  const worker = await acceptedWorker(process.baseUrl, made.key, 'runyard-rack-4');
  worker.say(rawHello({ worker_id: 'runyard-rack-4' }));
  await worker.roundTrip();
  const runId = await service.newRun({}, service.otherKey);
  await process.dispatch();
  const assignment = await firstAssignment(worker);
  expect(assignment.task_id).toBe(runId);
  worker.say({
    type: 'task_claimed',
    data: { task_id: runId, worker_id: 'runyard-rack-4', execution_id: assignment.execution_id },
  });
  await vi.waitFor(async () => {
    const run = await service.request<{ state: string }>('GET', `/agent/runs/${runId}`, { key: service.otherKey });
    expect(run.body.state).toBe('CLAIMED');
  });
  expect((await service.request('DELETE', `/keys/${made.uid}`)).status).toBe(200);
  await vi.waitFor(() => expect(worker.closedAt()).not.toBeNull(), { timeout: 60_000 });
  expect(await connectRawWorker(process.baseUrl, made.key, 'runyard-rack-4')).toBe(401);
});

test('a worker key cannot connect to a pool of a team, not even to a pool that its creator may use', async () => {
  const { key } = await make();
  await joinWorkerPool(service.deps.db, 'box', service.key);
  expect(await connectRawWorker(process.baseUrl, key, 'box')).toBe(403);
  expect(await connectRawWorker(process.baseUrl, key, 'new-box')).toBe(403);
});

test('a worker key cannot sign in a browser', async () => {
  const { key } = await make();
  const headers = { origin: service.baseUrl };
  const { detail } = await service.problem(403, 'POST', '/browser-sessions', {
    key: null,
    body: { api_key: key },
    headers,
  });
  expect(detail).toContain('api_key');
});

test('a process of an earlier version accepts a worker key for no route', async () => {
  const { uid } = await make();
  const rows = await service.deps.db.query(
    `SELECT FROM api_keys k WHERE k.id = $1 AND (k.kind = 'agent'
      OR EXISTS (SELECT FROM team_members m WHERE m.team_id = k.team_id AND m.user_id = k.user_id))`,
    [uid],
  );
  expect(rows).toEqual([]);
});
