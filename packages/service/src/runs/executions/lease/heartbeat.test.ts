import { randomUUIDv7 } from 'node:crypto';
import { beforeEach, expect, test } from 'vitest';
import { closeAtEnd } from '../../../../../../test/support/close-at-end.ts';
import { openTestExecutions } from '../../../../test/executions.ts';
import { cancelRun } from '../cancel/cancel.ts';
import { reconcile } from '../reconcile/reconcile.ts';
import { claim, start } from '../transitions/transitions.ts';
import { beatServiceInstance, heartbeatMs, outageSeconds } from './heartbeat.ts';

const t = closeAtEnd(await openTestExecutions());
beforeEach(async () => {
  await t.deps.db.pool.query('DELETE FROM runs; DELETE FROM worker_connections; DELETE FROM service_instances');
});

/** Creates a run in INPROGRESS whose lease has expired. */
async function runWithLeaseOver(): Promise<string> {
  const runId = await t.newRun();
  const assignment = (await t.assign(await t.newConnection())) ?? expect.fail('nothing was assigned');
  const target = { runId, executionId: assignment.executionId };
  await claim(t.deps.db, { ...target, args: { assignment_id: assignment.assignmentId, lease_seconds: 60 } });
  await start(t.deps.db, { ...target, payload: {} });
  await endLeases();
  return runId;
}
const endLeases = () =>
  t.deps.db.pool.query("UPDATE executions SET lease_until = clock_timestamp() - interval '1 second'");
const lastSignOfLife = (secondsAgo: number) =>
  t.deps.db.pool.query('UPDATE service_instances SET seen_at = clock_timestamp() - make_interval(secs => $1)', [
    secondsAgo,
  ]);
const stateOf = async (runId: string) =>
  (await t.deps.db.query<{ state: string }>('SELECT state FROM runs WHERE id = $1', [runId]))[0]?.state;

test('no run is lost after an outage of all service processes, even if the sweep comes before the first heartbeat', async () => {
  const instance = randomUUIDv7();
  await beatServiceInstance(t.deps, instance);
  const runId = await runWithLeaseOver();
  await lastSignOfLife(outageSeconds(t.deps.timing) + 1);
  await reconcile(t.deps);
  expect(await stateOf(runId), 'no process could have renewed its lease').toBe('INPROGRESS');
  expect(await beatServiceInstance(t.deps, instance), 'the same process, that slept').toBe(1);
  await reconcile(t.deps);
  expect(await stateOf(runId), 'its worker has the grace').toBe('INPROGRESS');
  await endLeases();
  await reconcile(t.deps);
  expect(await stateOf(runId), 'the worker did not come back').toBe('ERROR');
});

test('the first sweep after an outage of all service processes does not end a stopping sandbox', async () => {
  const instance = randomUUIDv7();
  await beatServiceInstance(t.deps, instance);
  const runId = await runWithLeaseOver();
  await cancelRun(t.deps, runId);
  await t.deps.db.pool.query("UPDATE executions SET stop_deadline = clock_timestamp() - interval '1 second'");
  const phase = async () => (await t.deps.db.query<{ phase: string }>('SELECT phase FROM executions'))[0]?.phase;
  await lastSignOfLife(outageSeconds(t.deps.timing) + 1);
  await reconcile(t.deps);
  expect(await phase()).toBe('stopping');
  await beatServiceInstance(t.deps, instance);
  await endLeases();
  await reconcile(t.deps);
  expect(await phase()).toBe('ended');
});

test('a service process that starts while another process lives extends no lease', async () => {
  await beatServiceInstance(t.deps, randomUUIDv7());
  await lastSignOfLife(outageSeconds(t.deps.timing) / 2);
  const runId = await runWithLeaseOver();
  expect(await beatServiceInstance(t.deps, randomUUIDv7())).toBe(0);
  await reconcile(t.deps);
  expect(await stateOf(runId)).toBe('ERROR');
});

test('an outage that is too short to be detected takes at most half of a lease, and several heartbeats come in half of a lease', () => {
  for (const leaseSeconds of [2, 12, 90, 3600]) {
    const timing = { ...t.deps.timing, leaseSeconds };
    expect(outageSeconds(timing)).toBeLessThanOrEqual(leaseSeconds / 2);
    expect(heartbeatMs(timing) * 3).toBeLessThan(outageSeconds(timing) * 1000);
  }
});
