import { expect, test } from 'vitest';
import { closeAtEnd } from '../../../../../test/support/close-at-end.ts';
import { openTestExecutions } from '../../../test/executions.ts';
import { insertWorkerKey, insertWorkerPool } from '../../../test/key.ts';
import { openHub } from './hub.ts';

const t = closeAtEnd(await openTestExecutions({ limit: 5 }));

test("a run with an image goes to the worker that runs images, and shows a limited number of the worker's reports about the image, and the failure", async () => {
  const hub = openHub(t.deps, { serviceInstanceId: '01a1fdad-b3cf-7c20-a9f8-51440e63fad8' });
  const keyId = await insertWorkerKey(t.deps.db, t.teamId);
  const assigned: { worker: string; task_id: string; execution_id: string; docker_image?: string | undefined }[] = [];
  const connect = async (worker: string, features: string[]) => {
    const connection = await hub.connect({
      workerId: worker,
      teamId: null,
      keyId,
      send: (message) => void (message.type === 'task_assignment' && assigned.push({ worker, ...message.data })),
      end: () => {},
    });
    const sandbox = { backend: 'docker' as const, features, missing: [] };
    const hello = { worker_id: worker, instance_id: worker, slots: 1, executions: [], sandbox, draining: false };
    await connection.message({ type: 'worker_hello', data: hello });
    return connection;
  };
  await connect('runyard-a', []);
  const able = await connect('runyard-b', ['images']);
  await t.deps.db.pool.query(
    `INSERT INTO environments (uid, team_id, config, creator_kind, creator_uid) VALUES ('boxesBoxesBoxesBoxes22', $1, '{"docker_image": "box:1"}', 'user', 'u')`,
    [t.teamId],
  );
  const runId = await t.newRun({
    environmentId: 'boxesBoxesBoxesBoxes22',
    config: { environment_id: 'boxesBoxesBoxesBoxes22' },
  });
  await expect.poll(() => assigned).toHaveLength(1);
  const [{ worker = '', task_id = '', execution_id = '', docker_image = '' } = {}] = assigned;
  expect([worker, docker_image]).toEqual(['runyard-b', 'box:1']);
  const ids = { task_id, execution_id };
  await able.message({ type: 'task_claimed', data: { ...ids, worker_id: 'runyard-b' } });
  await able.message({ type: 'image_step', data: { ...ids, step: 'started', image: 'box:1' } });
  const progress = { step: 'progress' as const, image: 'box:1', downloaded_bytes: 5, total_bytes: 10 };
  for (let n = 0; n < 50; n += 1) await able.message({ type: 'image_step', data: { ...ids, ...progress } });
  const { rows } = await t.deps.db.pool.query(
    `SELECT event_type, payload FROM run_events WHERE run_id = $1 AND payload->>'kind' = 'image' ORDER BY seq`,
    [runId],
  );
  expect(rows).toHaveLength(40);
  expect(rows.slice(0, 2)).toMatchObject([
    { event_type: 'setup_step_started', payload: { name: 'box:1' } },
    { event_type: 'setup_step_progress', payload: { downloaded_bytes: 5, total_bytes: 10 } },
  ]);

  const failure = { phase: 'prepare' as const, reason: 'image_not_found' };
  await able.message({ type: 'task_failed', data: { ...ids, message: 'no such image', failure } });
  const run = await t.deps.db.pool.query('SELECT state, status_message, error_code FROM runs WHERE id = $1', [runId]);
  expect(run.rows).toEqual([{ state: 'FAILED', status_message: 'no such image', error_code: 'invalid_request' }]);
  await hub.close();
});

test('the last lines of services that a worker reports are in the timeline, redacted and limited in number', async () => {
  const token = 'value-of-a-secret-4711';
  const hub = openHub({ ...t.deps, secrets: [token] }, { serviceInstanceId: '01a1fdad-b3cf-7c20-a9f8-51440e63fad8' });
  const keyId = await insertWorkerKey(t.deps.db, t.teamId);
  const assigned: { task_id: string; execution_id: string; services?: readonly object[] | undefined }[] = [];
  const connection = await hub.connect({
    workerId: 'runyard-c',
    teamId: null,
    keyId,
    send: (message) => void (message.type === 'task_assignment' && assigned.push(message.data)),
    end: () => {},
  });
  const sandbox = { backend: 'kubernetes' as const, features: ['service-images'], missing: [] };
  const hello = { worker_id: 'runyard-c', instance_id: 'c', slots: 1, executions: [], sandbox, draining: false };
  await connection.message({ type: 'worker_hello', data: hello });
  const services = [{ name: 'db', image: ' db:1 ', command: "run 'it now'", port: 1 }];
  await t.deps.db.pool.query(
    `INSERT INTO environments (uid, team_id, config, creator_kind, creator_uid) VALUES ('dbDbDbDbDbDbDbDbDbDb22', $1, $2, 'user', 'u')`,
    [t.teamId, { services }],
  );
  const runId = await t.newRun({ environmentId: 'dbDbDbDbDbDbDbDbDbDb22' });
  await expect.poll(() => assigned).toHaveLength(1);
  const [{ task_id = '', execution_id = '', services: given } = {}] = assigned;
  expect(given).toEqual([{ name: 'db', image: 'db:1', args: ['run', 'it now'], port: 1 }]);
  const ids = { task_id, execution_id };
  await connection.message({ type: 'task_claimed', data: { ...ids, worker_id: 'runyard-c' } });
  const say = (data: { output_tail: string; error?: string }) =>
    connection.message({ type: 'service_output', data: { ...ids, name: 'db', ...data } });
  await say({ output_tail: `token ${token} up\n` });
  await say({ output_tail: 'bye\n', error: 'exited with code 3' });
  const eventsOf = async () =>
    (
      await t.deps.db.pool.query<{ event_type: string; payload: object }>(
        `SELECT event_type, payload FROM run_events WHERE run_id = $1 AND payload->>'kind' = 'service' ORDER BY seq`,
        [runId],
      )
    ).rows;
  const events = await eventsOf();
  expect(events).toMatchObject([
    { event_type: 'setup_step_started', payload: { name: 'db: output' } },
    { event_type: 'setup_step_finished', payload: { name: 'db: output', output_tail: expect.stringContaining('up') } },
    { event_type: 'setup_step_started', payload: { name: 'db ended' } },
    { event_type: 'setup_step_finished', payload: { output_tail: 'bye\n', error: 'exited with code 3' } },
  ]);
  expect(JSON.stringify(events)).not.toContain(token);
  for (let n = 0; n < 250; n += 1) await say({ output_tail: 'more' });
  expect(await eventsOf()).toHaveLength(400);
  await connection.message({ type: 'task_completed', data: { ...ids, message: 'done' } });
  await hub.close();
});

test.each([
  ['with the image of its agent', 'registry.test/agent:1'],
  ['never where the service has no image of its agent', undefined],
])('a public worker gets a run with an image %s', async (_, sidecarImage) => {
  const hub = openHub(t.deps, { serviceInstanceId: '01a1fdad-b3cf-7c20-a9f8-51440e63fad8', sidecarImage });
  const keyId = await insertWorkerKey(t.deps.db, t.teamId);
  const assigned: { task_id: string; docker_image?: string; sidecar_image?: string; additional_oz_args?: string[] }[] =
    [];
  const workerId = `public-${sidecarImage === undefined ? 'without' : 'with'}`;
  await insertWorkerPool(t.deps.db, t.teamId, workerId);
  const connection = await hub.connect({
    workerId,
    teamId: t.teamId,
    keyId,
    send: (message) => void (message.type === 'task_assignment' && assigned.push(message.data as (typeof assigned)[0])),
    end: () => {},
  });
  const withImage = await t.newRun({
    workerHost: workerId,
    environmentId: 'boxesBoxesBoxesBoxes22',
    config: { environment_id: 'boxesBoxesBoxesBoxes22' },
  });
  const plain = await t.newRun({ workerHost: workerId });
  // The worker gets no assignment before its first message.
  await connection.message({ type: 'task_claimed', data: { task_id: plain, worker_id: workerId } });
  await hub.dispatch();
  const seen = assigned.map(({ task_id, docker_image, sidecar_image, additional_oz_args }) => ({
    task_id,
    docker_image,
    sidecar_image,
    additional_oz_args,
  }));
  const image = { docker_image: 'box:1', additional_oz_args: ['--docker-image', 'box:1'] };
  const expected = [
    ...(sidecarImage === undefined ? [] : [{ task_id: withImage, ...image, sidecar_image: sidecarImage }]),
    { task_id: plain, docker_image: undefined, additional_oz_args: [], sidecar_image: sidecarImage },
  ];
  expect(seen).toEqual(expected);
  await hub.close();
});
