/** Tests texts in the messages of workers. These texts may come from the output of any program. */
import { expect, test } from 'vitest';
import { closeAtEnd } from '../../../../../test/support/close-at-end.ts';
import { acceptedWorker, firstAssignment, rawHello, startTestProcess } from '../../../test/process.ts';
import { openTestService } from '../../../test/service.ts';

const service = await openTestService();
const process = closeAtEnd(await startTestProcess(service.deps));

test('a run ends with the message of its worker when the message contains NUL and half a surrogate pair', async () => {
  const worker = await acceptedWorker(process.baseUrl, service.key, 'box');
  worker.say(rawHello({ worker_id: 'box', sandbox: { backend: 'none', features: ['a\u0000'], missing: [] } }));
  await worker.roundTrip();
  const runId = await service.newRun({ config: { worker_host: 'box' } });
  await process.dispatch();
  const { task_id, execution_id } = await firstAssignment(worker);
  const ids = { task_id, execution_id };
  worker.say({ type: 'task_claimed', data: { ...ids, worker_id: 'box' } });
  worker.say({ type: 'sandbox_ready', data: { ...ids, backend: 'other\u0000', spawn_ms: 1 } });
  worker.say({ type: 'image_step', data: { ...ids, step: 'started', image: 'box\ud83d' } });
  const failure = { phase: 'prepare', reason: 'image_not_found' };
  worker.say({ type: 'task_failed', data: { ...ids, message: 'no \u0000 image \ud83d', failure } });
  await expect
    .poll(async () => (await service.request(`GET`, `/agent/runs/${runId}`)).body)
    .toMatchObject({ state: 'FAILED', status_message: { message: 'no \ufffd image \ufffd' } });
  expect(worker.closedAt()).toBeNull();
  worker.close();
});
