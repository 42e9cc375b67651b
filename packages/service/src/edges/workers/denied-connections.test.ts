import type { DeniedConnections } from '@runyard/contract/egress/denied';
import { WorkerMessage } from '@runyard/contract/workers/worker-protocol';
import { expect, test } from 'vitest';
import { closeAtEnd } from '../../../../../test/support/close-at-end.ts';
import { openTestExecutions } from '../../../test/executions.ts';
import { insertWorkerKey } from '../../../test/key.ts';
import { openHub } from './hub.ts';

const t = closeAtEnd(await openTestExecutions());

const report = (number: number, host: string, total: number): DeniedConnections => ({
  number,
  total,
  connections: [{ host, port: 443, reason: 'host_not_allowed', count: 1 }],
});

test('the service stores each report of a worker once, without secrets, and only if the report is about an execution of the worker', async () => {
  const secret = 'planted-secret-of-the-service';
  const hub = openHub({ ...t.deps, secrets: [secret] }, { serviceInstanceId: '01a1fdad-b3cf-7c20-a9f8-51440e63fad8' });
  const assigned: { readonly task_id: string; readonly execution_id: string }[] = [];
  const connection = await hub.connect({
    workerId: 'runyard-a',
    teamId: null,
    keyId: await insertWorkerKey(t.deps.db, t.teamId),
    send: (message) => void (message.type === 'task_assignment' && assigned.push(message.data)),
    end: () => {},
  });
  const sandbox = { backend: 'bubblewrap' as const, features: [], missing: [] };
  const hello = { worker_id: 'runyard-a', instance_id: 'i', slots: 1, executions: [], sandbox, draining: false };
  await connection.message({ type: 'worker_hello', data: hello });
  const own = await t.newRun();
  await expect.poll(() => assigned).toHaveLength(1);
  const [mine] = assigned;
  const other = await t.newRun();
  const queued = await t.deps.db.pool.query('SELECT id FROM executions WHERE run_id = $1', [other]);
  if (mine === undefined) throw new Error('no assignment');
  const { task_id, execution_id } = mine;
  const say = (denied: DeniedConnections, ids = { task_id, execution_id }) =>
    connection.message({ type: 'connections_denied', data: { ...denied, ...ids } });

  await say(report(1, `${secret}.evil.example`, 1));
  await say(report(1, 'again.example', 1));
  await say(report(2, 'b.example', 2));
  await say(report(21, 'b.example', 900));
  await say(report(1, 'other.example', 1), { task_id: other, execution_id: queued.rows[0].id });

  const { rows } = await t.deps.db.pool.query(
    "SELECT run_id, payload FROM run_events WHERE event_type = 'connection_denied' ORDER BY seq",
  );
  expect(rows.map((row) => row.run_id)).toEqual([own, own, own]);
  expect(rows.map(({ payload }) => [payload.number, payload.host, payload.total])).toEqual([
    [1, expect.stringMatching(/\.evil\.example$/), undefined],
    [2, 'b.example', undefined],
    [21, undefined, 900],
  ]);
  expect(JSON.stringify(rows)).not.toContain(secret);
  await hub.close();
});

test('the service refuses a report with a number beyond the limit', () => {
  const data = { task_id: 't', execution_id: 'e', ...report(22, 'a.example', 1) };
  expect(WorkerMessage.safeParse({ type: 'connections_denied', data }).success).toBe(false);
});
