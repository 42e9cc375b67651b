import { randomUUIDv7 } from 'node:crypto';
import { beforeEach, expect, test } from 'vitest';
import { closeAtEnd } from '../../../../../../test/support/close-at-end.ts';
import { openTestExecutions, type TestExecutions } from '../../../../test/executions.ts';
import { claim } from '../transitions/transitions.ts';
import { readWaits } from './read-waits.ts';

let fixture: TestExecutions;

beforeEach(async () => {
  fixture = closeAtEnd(await openTestExecutions({ limit: 2 }));
});

const change = (text: string, ...values: unknown[]) => fixture.deps.db.query(text, values);
const waitOf = async (runId: string) => (await readWaits(fixture.deps.db, fixture.teamId, [runId])).get(runId);

test('the sentence about a waiting run names the worker that is not connected', async () => {
  const runId = await fixture.newRun();
  const elsewhere = await fixture.newRun({ workerHost: 'build-machine' });
  expect(await waitOf(runId)).toBe('The run waits: no worker is connected. Start one with bin/runyard worker.');
  expect(await waitOf(elsewhere)).toBe(
    'The run waits: no worker with the name build-machine is connected (config.worker_host).',
  );
  const connection = await fixture.newConnection();
  expect(await waitOf(runId)).toBe('The run waits for a worker to take it.');
  expect(await waitOf(elsewhere)).toContain('build-machine');
  await change('UPDATE worker_connections SET draining = true WHERE id = $1', connection);
  expect(await waitOf(runId)).toContain('the connected workers are shutting down');
});

test('the sentence about a waiting run names the problem of the worker of its own pool, but not of the hosted pool', async () => {
  const runId = await fixture.newRun();
  const own = await fixture.newRun({ workerHost: 'build-machine' });
  const [hosted, ofTeam] = [await fixture.newConnection(), await fixture.newConnection()];
  await change(`UPDATE worker_connections SET problem = 'its disk is nearly full' WHERE id = $1`, hosted);
  await change(
    `UPDATE worker_connections SET problem = 'its disk is nearly full', worker_id = 'build-machine', team_id = $2 WHERE id = $1`,
    ofTeam,
    fixture.teamId,
  );
  expect(await waitOf(runId)).toMatch(
    /^The run waits: no worker that is connected can start sandboxes now.*bin\/runyard status/,
  );
  expect(await waitOf(runId)).not.toContain('disk');
  expect(await waitOf(own)).toBe(
    'The run waits: the connected worker takes no runs because of a problem: its disk is nearly full',
  );
});

test('the sentence about a waiting run names the image that no connected worker can run', async () => {
  await fixture.newConnection();
  const runId = await fixture.newRun();
  await change(`UPDATE executions SET image = 'box:1' WHERE run_id = $1`, runId);
  expect(await waitOf(runId)).toMatch(/docker_image box:1, .* oz-agent-worker, .* RUNYARD_SIDECAR_IMAGE/);
  await change(`UPDATE worker_connections SET sandbox = '{"features": []}'`);
  expect(await waitOf(runId)).toMatch(/no connected worker can run container images, .* docker_image box:1/);
  await change(`UPDATE worker_connections SET sandbox = '{"features": ["images"]}'`);
  expect(await waitOf(runId)).toBe('The run waits for a worker to take it.');
});

test('the sentence about a waiting run says that no connected worker knows approval rules about hosts', async () => {
  await fixture.newConnection();
  const runId = await fixture.newRun({ config: { approval_rules: [{ host: 'api.example.com' }] } });
  expect(await waitOf(runId)).toMatch(/approval_rules name a host, and no connected worker can hold/);
  await change(`UPDATE worker_connections SET sandbox = '{"features": ["host-rules"]}'`);
  expect(await waitOf(runId)).toBe('The run waits for a worker to take it.');
});

test('the sentence about a waiting run says that no connected worker can start services from images', async () => {
  await fixture.newConnection();
  await change(
    `INSERT INTO environments (uid, team_id, config, creator_kind, creator_uid) VALUES
      ('imageImageImageImage22', $1, '{"services": [{"name": "a", "image": "a:1", "port": 1}]}', 'user', 'u'),
      ('plainPlainPlainPlain22', $1, '{"services": [{"name": "a", "command": "a", "image": null, "port": 1}]}', 'user', 'u')`,
    fixture.teamId,
  );
  const runId = await fixture.newRun({ environmentId: 'imageImageImageImage22' });
  const plain = await fixture.newRun({ environmentId: 'plainPlainPlainPlain22' });
  const sentence = /services with an image, and no connected worker .* RUNYARD_SANDBOX=docker or kubernetes/;
  expect(await waitOf(runId)).toMatch(sentence);
  await change(`UPDATE worker_connections SET sandbox = '{"features": ["images"]}'`);
  expect(await waitOf(runId)).toMatch(sentence);
  expect(await waitOf(plain)).toBe('The run waits for a worker to take it.');
  await change(`UPDATE worker_connections SET sandbox = '{"features": ["service-images"]}'`);
  expect(await waitOf(runId)).toBe('The run waits for a worker to take it.');
});

test('the sentence about a waiting run says whether the slots of the worker or the limit of the team are used up', async () => {
  const connection = await fixture.newConnection();
  await change('UPDATE worker_connections SET slots = 1');
  await fixture.newRun();
  await fixture.newRun();
  const last = await fixture.newRun();
  await fixture.assign(connection);
  expect(await waitOf(last)).toBe('The run waits for a free slot: the connected worker has 1, and all are taken.');
  await fixture.newConnection();
  await change('UPDATE worker_connections SET slots = 2');
  expect(await waitOf(last)).toBe('The run waits for a worker to take it.');
  await fixture.assign(connection);
  expect(await waitOf(last)).toBe("The run waits: the team's limit is reached (2 runs at once).");
});

test('the sentence about a waiting run names the limit of sandboxes that work or wait, and says when the next run can start', async () => {
  const connection = await fixture.newConnection();
  await change('UPDATE worker_connections SET slots = 1');
  const waiting = [await fixture.newRun(), await fixture.newRun()];
  const last = await fixture.newRun();
  for (const _ of waiting) {
    await fixture.assign(connection);
    await change(`UPDATE executions SET awaiting_until = now() + interval '1 hour' WHERE phase = 'assigned'`);
  }
  expect(await waitOf(last)).toBe(
    'The run waits: the connected worker has sandboxes that work or wait for other runs, 2 times as many as slots. It starts when one of these sandboxes ends: when a run that waits for others continues and ends, or is cancelled.',
  );
  await change('UPDATE worker_connections SET slots = 4');
  expect(await waitOf(last)).toBe('The run waits for a worker to take it.');
  await change('UPDATE teams SET max_concurrent_executions = 1');
  expect(await waitOf(last)).toMatch(
    /^The run waits: the team has 2 sandboxes that work or wait for other runs\. A run of this depth starts only if the team has fewer than 2 times its limit \(1 at once\)\. It starts when/,
  );
  // A run that is one level deeper may still start.
  await change('UPDATE executions SET depth = 1 WHERE run_id = $1', last);
  expect(await waitOf(last)).toBe('The run waits for a worker to take it.');
});

test('the sentence about a run that waits for a retry names the pause, or says that the older sandbox must end first', async () => {
  await fixture.newConnection();
  const runId = await fixture.newRun();
  await change(`UPDATE executions SET available_at = now() + interval '4900 ms' WHERE run_id = $1`, runId);
  expect(await waitOf(runId)).toMatch(/^The run waits [1-5] s before it is tried again\.$/);
  await change(
    `WITH newer AS (
       INSERT INTO executions (id, run_id, team_id, number, phase, pool)
       SELECT $2, run_id, team_id, 2, 'queued', pool FROM executions WHERE run_id = $1 RETURNING id, run_id
     ), run AS (UPDATE runs SET current_execution_id = newer.id FROM newer WHERE runs.id = newer.run_id)
     UPDATE executions SET phase = 'stopping' WHERE run_id = $1`,
    runId,
    randomUUIDv7(),
  );
  expect(await waitOf(runId)).toBe('The run waits until the sandbox of its earlier execution has ended.');
});

test('an assigned run waits for the worker, then for the sandbox, then for the setup, and has no sentence after it has begun', async () => {
  const connection = await fixture.newConnection();
  const runId = await fixture.newRun();
  const assignment = await fixture.assign(connection);
  if (!assignment) throw new Error('nothing was assigned');
  expect(await waitOf(runId)).toBe(
    `The run was handed to the worker runyard-${connection}, which has not claimed it yet.`,
  );
  const { executionId, assignmentId } = assignment;
  await claim(fixture.deps.db, { runId, executionId, args: { assignment_id: assignmentId, lease_seconds: 60 } });
  expect(await waitOf(runId)).toBe(`The worker runyard-${connection} starts the sandbox.`);
  await change(`UPDATE executions SET sandbox = '{}' WHERE run_id = $1`, runId);
  expect(await waitOf(runId)).toBe('The sandbox is ready, and the agent starts in it.');
  const step = (seq: number, type: string, name: string) =>
    change(
      `INSERT INTO run_events (run_id, seq, event_type, state, execution_number, payload)
       VALUES ($1, $2, $3, 'CLAIMED', 1, jsonb_build_object('kind', 'setup_command', 'name', $4::text))`,
      runId,
      seq,
      type,
      name,
    );
  await step(101, 'setup_step_started', 'npm ci');
  expect(await waitOf(runId)).toBe('The agent prepares the sandbox: setup command npm ci');
  await step(102, 'setup_step_finished', 'npm ci');
  expect(await waitOf(runId)).toBe('The sandbox is ready, and the agent starts in it.');
  await change(`UPDATE runs SET state = 'INPROGRESS' WHERE id = $1`, runId);
  expect(await waitOf(runId)).toBeUndefined();
});

test('a team gets no sentence about a run of another team', async () => {
  const runId = await fixture.newRun();
  expect((await readWaits(fixture.deps.db, randomUUIDv7(), [runId])).size).toBe(0);
});
