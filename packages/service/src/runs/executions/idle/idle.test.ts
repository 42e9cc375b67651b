import { beforeEach, expect, test } from 'vitest';
import { closeAtEnd } from '../../../../../../test/support/close-at-end.ts';
import { insertTeam, openTestExecutions, type TestExecutions } from '../../../../test/executions.ts';
import type { NewRun } from '../../runs/submit/new-run.ts';
import { evictIdle } from './idle.ts';

let t: TestExecutions;

beforeEach(async () => {
  t = closeAtEnd(await openTestExecutions());
});

/** Assigns one execution for each given phase to the connection, and sets that phase. The first execution has been idle the longest. */
async function hold(phases: readonly ('idle' | 'running')[]): Promise<{ connection: string; executions: string[] }> {
  const connection = await t.newConnection();
  const executions: string[] = [];
  for (const [n, phase] of phases.entries()) {
    await t.newRun();
    const assignment = await t.assign(connection);
    if (!assignment) throw new Error('nothing was assigned');
    executions.push(assignment.executionId);
    await t.database.db.pool.query(
      `UPDATE executions SET phase = $2, finished_at = CASE WHEN $2 = 'idle' THEN now() + make_interval(secs => $3) END WHERE id = $1`,
      [assignment.executionId, phase, n],
    );
  }
  return { connection, executions };
}

test('an eviction ends the sandboxes that have waited longest, until the limit is reached', async () => {
  const { connection, executions } = await hold(['idle', 'running', 'idle', 'idle', 'idle']);
  const [first, , third] = executions;
  expect((await evictIdle(t.deps, connection, 3)).sort()).toEqual([first, third].sort());
});

test('an eviction ends no working execution, even if more executions work than the limit allows', async () => {
  const { connection, executions } = await hold(['running', 'running', 'idle']);
  expect(await evictIdle(t.deps, connection, 1)).toEqual([executions[2]]);
});

test('two concurrent evictions evict no more sandboxes than a single eviction', async () => {
  const { connection } = await hold(['idle', 'idle', 'idle', 'idle', 'idle', 'idle']);
  const evicted = await Promise.all(Array.from({ length: 8 }, () => evictIdle(t.deps, connection, 4)));
  expect(evicted.flat()).toHaveLength(2);
});

/** Assigns a further execution to the connection. The turn of this execution ended `minutes` minutes ago. */
async function rest(
  connection: string,
  minutes: number,
  { isBlocked = false, ...run }: Partial<NewRun> & { isBlocked?: boolean } = {},
): Promise<string> {
  await t.newRun(run);
  const assignment = await t.assign(connection);
  if (!assignment) throw new Error('nothing was assigned');
  const { runId, executionId } = assignment;
  await t.deps.db.query(
    "UPDATE executions SET phase = 'idle', finished_at = now() - make_interval(mins => $2) WHERE id = $1",
    [executionId, minutes],
  );
  const state = isBlocked ? 'BLOCKED' : 'SUCCEEDED';
  await t.deps.db.query('UPDATE runs SET state = $2 WHERE id = $1', [runId, state]);
  return executionId;
}

/** Returns the executions in the order in which they are evicted. */
async function order(connection: string, executions: readonly string[]): Promise<number[]> {
  const left: number[] = [];
  for (let most = executions.length - 1; most >= 0; most -= 1)
    left.push(...(await evictIdle(t.deps, connection, most)).map((id) => executions.indexOf(id)));
  return left;
}

test('an eviction begins with the team that has the most sandboxes, even if sandboxes of other teams waited longer', async () => {
  const connection = await t.newConnection();
  const other = { teamId: await insertTeam(t.database) };
  const executions = [
    await rest(connection, 50, { ...other, isBlocked: true }),
    await rest(connection, 40, other),
    await rest(connection, 5),
    await rest(connection, 4),
    await rest(connection, 3),
    await rest(connection, 2),
  ];
  // At first the teams have 4 and 2 sandboxes. The larger team loses two. Then both teams lose sandboxes in turn, beginning with the team
  // that has the older sandbox.
  expect(await order(connection, executions)).toEqual([2, 3, 1, 4, 5, 0]);
});

test('an eviction counts the working sandboxes too when it looks for the team with the most sandboxes', async () => {
  const connection = await t.newConnection();
  const other = { teamId: await insertTeam(t.database) };
  const executions = [await rest(connection, 50, other), await rest(connection, 40, other), await rest(connection, 1)];
  for (let n = 0; n < 2; n += 1) {
    await t.newRun();
    await t.assign(connection);
  }
  expect(await evictIdle(t.deps, connection, 4)).toEqual([executions[2]]);
});

test('within a team, agents with an ended turn are evicted before agents with a question, and agents of automation before agents of people', async () => {
  const connection = await t.newConnection();
  const service = { kind: 'service_account', uid: 'ci' } as const;
  const executions = [
    await rest(connection, 60, { isBlocked: true }),
    await rest(connection, 50, { isBlocked: true, source: 'SCHEDULED_AGENT' }),
    await rest(connection, 40),
    await rest(connection, 30),
    await rest(connection, 20, { source: 'WEBHOOK' }),
    await rest(connection, 10, { creator: service }),
  ];
  expect(await order(connection, executions)).toEqual([4, 5, 2, 3, 1, 0]);
});

test('an eviction takes a sandbox with an open question in the debug window as late as any other sandbox with an open question', async () => {
  const connection = await t.newConnection();
  const executions = [await rest(connection, 60), await rest(connection, 1)];
  await t.deps.db.query(`UPDATE runs SET state = 'FAILED' WHERE current_execution_id = $1`, [executions[0]]);
  await t.deps.db.query(`UPDATE executions SET debug_request = '{}' WHERE id = $1`, [executions[0]]);
  expect(await order(connection, executions)).toEqual([1, 0]);
});
