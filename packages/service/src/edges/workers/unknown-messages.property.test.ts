/** Tests that workers which are newer than the service keep their connection. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { closeAtEnd } from '../../../../../test/support/close-at-end.ts';
import { acceptedWorker, firstAssignment, startTestProcess } from '../../../test/process.ts';
import { openTestService } from '../../../test/service.ts';

const service = await openTestService();
const process = closeAtEnd(await startTestProcess(service.deps));

const reports = ['task_claimed', 'task_completed', 'task_failed', 'execution_closed'];
const known = [...reports, 'task_rejected', 'worker_status'];
const members = fc.dictionary(fc.string(), fc.jsonValue(), { maxKeys: 5 });
/** A message with a type or with members that the service does not know. */
const newer = fc.oneof(
  fc.jsonValue(),
  fc.record({ type: fc.oneof(fc.string(), fc.constant('debug_archive_logs_uploaded')), data: fc.jsonValue() }),
  fc.record({ type: fc.constantFrom(...known), data: members, later: fc.jsonValue() }),
  fc.record({
    type: fc.constantFrom(...reports),
    data: members.map((more) => ({ ...more, task_id: 'x', execution_id: 'x', message: '', reason: '', worker_id: '' })),
  }),
);

test('no unknown message and no unknown member closes the connection of a worker, and the worker still gets runs', async () => {
  const worker = await acceptedWorker(process.baseUrl, service.key, 'box');
  await fc.assert(
    fc.asyncProperty(fc.array(newer, { minLength: 1, maxLength: 10 }), async (messages) => {
      for (const message of messages) worker.say(message as object);
      await worker.roundTrip();
      expect(worker.closedAt()).toBeNull();
    }),
    { numRuns: 50 },
  );
  const runId = await service.newRun({ config: { worker_host: 'box' } });
  await process.dispatch();
  const { task_id, execution_id } = await firstAssignment(worker);
  expect(task_id).toBe(runId);
  const ids = { task_id, execution_id, later: { any: ['thing'] } };
  worker.say({ type: 'task_claimed', data: { ...ids, worker_id: 'box' }, later: 1 });
  worker.say({ type: 'task_failed', data: { ...ids, message: 'gone', failure_cause: 7, failure_details: [1] } });
  await expect
    .poll(async () => (await service.request(`GET`, `/agent/runs/${runId}/timeline`)).text)
    .toContain('execution_retried');
  expect(worker.closedAt()).toBeNull();
  worker.close();
});
