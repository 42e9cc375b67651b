import { randomUUIDv7 } from 'node:crypto';
import { beforeEach, expect, test } from 'vitest';
import { closeAtEnd } from '../../../../../../test/support/close-at-end.ts';
import { assignNext, type OneSlot } from '../../../../test/assign-next.ts';
import { copyQueuedRun, insertTeam, openTestExecutions, type TestExecutions } from '../../../../test/executions.ts';
import { insertWorkerKey, insertWorkerPool } from '../../../../test/key.ts';
import type { Statement } from '../../../platform/store/database/statement.ts';
import { interruptRun } from '../cancel/cancel.ts';
import { retryOrError } from '../transitions/relaunch.ts';
import { claim } from '../transitions/transitions.ts';
import { assign } from './assign.ts';
import { markAwaiting } from './awaiting.ts';
import { holdsSlot, leastDepth } from './may-take.ts';

let fixture: TestExecutions;
let slot: OneSlot;

beforeEach(async () => {
  fixture = closeAtEnd(await openTestExecutions({ limit: 5 }));
  const connectionId = await fixture.newConnection();
  slot = { connectionId, workerId: 'runyard-test', workerInstance: 'i', pool: '', teamId: null };
});

/** Returns the id of the next run to assign, or the reason why there is no such run. */
async function next(overrides: Partial<OneSlot> = {}): Promise<string> {
  const assignment = await assignNext(fixture.deps, { ...slot, ...overrides });
  return typeof assignment === 'string' ? assignment : assignment.runId;
}

/** Returns a slot of a worker of a team's own pool. */
async function slotOf(teamId: string, pool: string): Promise<Partial<OneSlot>> {
  const [connectionId, keyId] = [randomUUIDv7(), await insertWorkerKey(fixture.deps.db, teamId)];
  await insertWorkerPool(fixture.deps.db, teamId, pool);
  await change(
    'INSERT INTO worker_connections (id, service_instance_id, worker_id, team_id, key_id) VALUES ($1, $1, $2, $3, $4)',
    connectionId,
    pool,
    teamId,
    keyId,
  );
  return { connectionId, pool, teamId };
}

const change = (text: string, ...values: unknown[]) => fixture.deps.db.query(text, values);

test('the oldest queued run is assigned first, but child runs are assigned before their parent runs', async () => {
  const oldest = await fixture.newRun();
  const newer = await fixture.newRun();
  const child = await fixture.newRun({ ancestorIds: [oldest] });
  const grandchild = await fixture.newRun({ ancestorIds: [oldest, child] });
  expect([await next(), await next(), await next(), await next()]).toEqual([grandchild, child, oldest, newer]);
  expect(await next()).toBe('nothing');
});

test('a retry goes to another worker first, and to the same one if no other takes runs or after a while', async () => {
  const other = { ...slot, connectionId: await fixture.newConnection(), workerInstance: 'other' };
  const runId = await fixture.newRun();
  const failed = async (from: OneSlot) => {
    const assignment = await assignNext(fixture.deps, from);
    if (typeof assignment === 'string') throw new Error(assignment);
    const { assignmentId, executionId } = assignment;
    await claim(fixture.deps.db, { runId, executionId, args: { assignment_id: assignmentId, lease_seconds: 60 } });
    const status = { message: 'No sandbox', code: 'resource_unavailable' } as const;
    await retryOrError(fixture.deps, fixture.deps.db, {
      runId,
      executionId,
      status,
      sandboxGone: true,
    });
  };
  await failed(slot);
  expect(await next()).toBe('nothing');
  await failed(other);
  expect(await next({ ...other })).toBe('nothing');
  await change(`UPDATE worker_connections SET problem = 'full' WHERE id = $1`, slot.connectionId);
  await failed(other);
  await change('UPDATE worker_connections SET problem = NULL');
  expect(await next({ ...other })).toBe('nothing');
  await change(`UPDATE executions SET available_at = now() - interval '11 seconds' WHERE phase = 'queued'`);
  expect(await next({ ...other })).toBe(runId);
});

test('teams with queued runs take turns, and a team at its limit is skipped', async () => {
  const other = await insertTeam(fixture.database, 1);
  const ours = [await fixture.newRun(), await fixture.newRun(), await fixture.newRun()];
  const theirs = [await fixture.newRun({ teamId: other }), await fixture.newRun({ teamId: other })];
  await change(`UPDATE teams SET served_at = now() WHERE id = $1`, other);
  const order = [await next(), await next(), await next(), await next(), await next()];
  expect(order).toEqual([ours[0], theirs[0], ours[1], ours[2], 'nothing']);
  const ofOther = { ...(await slotOf(other, 'box')), pool: '' };
  expect(await next(ofOther)).toBe('nothing');
  await change(`UPDATE teams SET max_concurrent_executions = 2 WHERE id = $1`, other);
  expect(await next({ ...(await slotOf(fixture.teamId, 'box')), pool: '' })).toBe('nothing');
  expect(await next(ofOther)).toBe(theirs[1]);
});

test('only one run is assigned if several assignments find the same free slot of a team at the same time', async () => {
  await change('UPDATE teams SET max_concurrent_executions = 1');
  for (let n = 0; n < 3; n += 1) await fixture.newRun();
  for (let round = 0; round < 10; round += 1) {
    const outcomes = await Promise.all(Array.from({ length: 6 }, () => next()));
    expect(outcomes.filter((outcome) => outcome !== 'contended' && outcome !== 'nothing').length).toBeLessThan(2);
    const rows = await change(`SELECT FROM executions WHERE phase = 'assigned'`);
    expect(rows.length).toBeLessThan(2);
    if (rows.length === 1) expect(await next()).toBe('nothing');
    await change(`UPDATE executions SET phase = 'queued'; UPDATE runs SET state = 'QUEUED'`);
  }
});

test('a run is not assigned during its pause, to another pool, or while an older execution of the run has not ended', async () => {
  const [paused, elsewhere, retried, last] = [
    await fixture.newRun(),
    await fixture.newRun({ workerHost: 'build-machine' }),
    await fixture.newRun(),
    await fixture.newRun(),
  ];
  await change(`UPDATE executions SET available_at = now() + interval '1 hour' WHERE run_id = $1`, paused);
  await change(
    `WITH newer AS (
       INSERT INTO executions (id, run_id, team_id, number, phase, pool)
       SELECT gen_random_uuid(), run_id, team_id, 2, 'queued', pool FROM executions WHERE run_id = $1 RETURNING id, run_id
     ), run AS (UPDATE runs SET current_execution_id = newer.id FROM newer WHERE runs.id = newer.run_id)
     UPDATE executions SET phase = 'stopping' WHERE run_id = $1`,
    retried,
  );
  expect([await next(), await next()]).toEqual([last, 'nothing']);
  expect(await next(await slotOf(fixture.teamId, 'build-machine'))).toBe(elsewhere);
  await change(`UPDATE executions SET phase = 'ended' WHERE run_id = $1 AND number = 1`, retried);
  await change(`UPDATE executions SET available_at = now() WHERE run_id = $1`, paused);
  expect([await next(), await next()].sort()).toEqual([paused, retried].sort());
});

test('a run whose approval rule names a host is assigned only to a worker that knows such rules', async () => {
  const config = { approval_policy: 'ask' as const, approval_rules: [{ push: '*' }, { host: 'api.example.com' }] };
  const asking = await fixture.newRun({ config });
  const plain = await fixture.newRun({ config: { ...config, approval_rules: [{ push: '*' }] } });
  expect([await next(), await next()]).toEqual([plain, 'nothing']);
  expect(await assignNext(fixture.deps, { ...slot, holdsHosts: true })).toMatchObject({ runId: asking });
});

test('a run with an image is assigned only to a worker that can run images, with the image that was set when the run was created', async () => {
  await change(
    `INSERT INTO environments (uid, team_id, config, creator_kind, creator_uid) VALUES ('boxesBoxesBoxesBoxes22', $1, '{"docker_image": "box:1"}', 'user', 'u')`,
    fixture.teamId,
  );
  const boxed = await fixture.newRun({
    environmentId: 'boxesBoxesBoxesBoxes22',
    config: { environment_id: 'boxesBoxesBoxesBoxes22' },
  });
  const plain = await fixture.newRun();
  await change(`UPDATE environments SET config = '{"docker_image": "box:2"}'`);
  expect([await next(), await next()]).toEqual([plain, 'nothing']);
  const assignment = await assignNext(fixture.deps, { ...slot, runsImages: true });
  expect(assignment).toMatchObject({ runId: boxed, image: 'box:1' });
  const ofRunner = await fixture.newRun({
    environmentId: 'boxesBoxesBoxesBoxes22',
    config: { environment_id: 'boxesBoxesBoxesBoxes22', runner_config: { docker_image: 'own:1' } },
  });
  expect(await next()).toBe('nothing');
  expect(await assignNext(fixture.deps, { ...slot, runsImages: true })).toMatchObject({
    runId: ofRunner,
    image: 'own:1',
  });
});

test('a run with services from images is assigned only to a worker that can start them, with the services of its revision', async () => {
  await change(
    `INSERT INTO environments (uid, team_id, config, creator_kind, creator_uid) VALUES
      ('imageImageImageImage22', $1, '{"services": [{"name": "a", "image": "a:1", "command": "x y", "port": 1}, {"name": "b", "command": "b", "port": 2}]}', 'user', 'u')`,
    fixture.teamId,
  );
  const ofImage = await fixture.newRun({ environmentId: 'imageImageImageImage22' });
  await change(`UPDATE environments SET config = '{}' WHERE uid = 'imageImageImageImage22'`);
  const plain = await fixture.newRun();
  expect([await next(), await next()]).toEqual([plain, 'nothing']);
  expect(await assignNext(fixture.deps, { ...slot, runsImages: true })).toBe('nothing');
  expect(await assignNext(fixture.deps, { ...slot, runsServiceImages: true })).toMatchObject({
    runId: ofImage,
    services: [{ name: 'a', image: 'a:1', args: ['x', 'y'], port: 1 }],
  });
});

test("the number of a team's sandboxes that wait for other runs is limited, but the runs for which they wait are still assigned", async () => {
  await change('UPDATE teams SET max_concurrent_executions = 1');
  const runs = [await fixture.newRun(), await fixture.newRun(), await fixture.newRun()];
  const startAndAwait = async () => {
    const run = await next();
    await change(`UPDATE executions SET awaiting_until = now() + interval '1 hour' WHERE phase = 'assigned'`);
    return run;
  };
  expect([await startAndAwait(), await startAndAwait(), await startAndAwait()]).toEqual([runs[0], runs[1], 'nothing']);
  const child = await fixture.newRun({ ancestorIds: [runs[0] ?? ''] });
  const sibling = await fixture.newRun({ ancestorIds: [runs[0] ?? ''] });
  expect([await startAndAwait(), await startAndAwait()]).toEqual([child, 'nothing']);
  expect(await next({ leastDepth: 3 })).toBe('nothing');
  const grandchild = await fixture.newRun({ ancestorIds: [runs[0] ?? '', child] });
  expect([await startAndAwait(), await next()]).toEqual([grandchild, 'nothing']);
  await change(`UPDATE executions SET phase = 'ended' WHERE run_id = ANY($1)`, [grandchild, child]);
  expect(await next()).toBe(sibling);
});

test.each([
  [0, 4, 0],
  [7, 4, 0],
  [8, 4, 1],
  [11, 4, 1],
  [12, 4, 2],
  [3, 0, 2],
])('%i sandboxes on %i slots leave room for runs of depth %i and below', (live, slots, depth) => {
  expect(leastDepth(live, slots)).toBe(depth);
});

test("an interrupt ends an execution's wait for other runs, and only its next turn can wait again", async () => {
  const { runId, executionId, tokenHash } = await fixture.newSession();
  const child = await fixture.newRun({ parentRunId: runId, ancestorIds: [runId] });
  await change(`UPDATE executions SET phase = 'running' WHERE id = $1`, executionId);
  await change(`UPDATE runs SET state = 'INPROGRESS', assignment_id = NULL WHERE id = $1`, runId);
  const marked = async () => await markAwaiting(fixture.deps.db, { executionId, tokenHash }, 60_000, [child]);
  const holds = async () =>
    (await change(`SELECT FROM executions e WHERE id = $1 AND ${holdsSlot('e')}`, executionId)).length;
  expect([await marked(), await holds()]).toEqual([true, 0]);
  const creator = { kind: 'user', uid: 'tester' } as const;
  await interruptRun(fixture.deps.db, runId, { teamId: fixture.teamId, creator, keyId: null, from: {} as never });
  expect([await holds(), await marked()]).toEqual([1, false]);
  await change('UPDATE executions SET finished_turns = finished_turns + 1 WHERE id = $1', executionId);
  expect([await marked(), await holds()]).toEqual([true, 0]);
});

test('an assignment skips a run that another transaction has locked', async () => {
  const [locked, free] = [await fixture.newRun(), await fixture.newRun()];
  await fixture.deps.db.transaction(async (tx) => {
    await tx.query('SELECT FROM runs WHERE id = $1 FOR UPDATE', [locked]);
    expect(await next()).toBe(free);
    expect(await next()).toBe('contended');
  });
  expect(await next()).toBe(locked);
});

interface PlanNode {
  readonly 'Node Type': string;
  readonly 'Actual Rows': number;
  readonly 'Actual Loops': number;
  readonly 'Rows Removed by Filter'?: number;
  readonly Plans?: readonly PlanNode[];
}

const rowsOf = (node: PlanNode): number =>
  Math.max(
    (node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0)) * node['Actual Loops'],
    ...(node.Plans ?? []).map(rowsOf),
  );

test.each([
  ['known', 'ANALYZE', 1],
  ['not yet known', 'SELECT', 1],
  ['known', 'ANALYZE', 8],
  ['not yet known', 'SELECT', 8],
])(
  'a long queue whose length is %s to the planner (%s): %i assignments read only a few rows of it',
  async (_name, prepare, count) => {
    const { db } = fixture.deps;
    const first = await fixture.newRun();
    await copyQueuedRun(fixture.database, first, 2000);
    await change('UPDATE teams SET max_concurrent_executions = 50');
    await change(prepare);
    let plan: PlanNode | undefined;
    const explaining: typeof db.query = async (statement, values) => {
      const { text } = statement as Statement;
      const [row] = await db.query<{ 'QUERY PLAN': [{ Plan: PlanNode }] }>(
        `EXPLAIN (ANALYZE, FORMAT JSON) ${text}`,
        values,
      );
      plan = row?.['QUERY PLAN'][0].Plan;
      return [];
    };
    const { connectionId, workerId, workerInstance, ...free } = slot;
    const slots = Array.from({ length: count }, () => ({ connectionId, workerId, workerInstance }));
    await assign({ ...fixture.deps, db: { ...db, query: explaining } }, { ...free, slots });
    expect(plan && rowsOf(plan)).toBeLessThan(20 + count ** 2);
    const rows = await db.query<{ id: string }>(`SELECT id FROM runs WHERE state = 'PENDING'`);
    expect(rows).toHaveLength(count);
  },
);
