/** Tests the assignment of several executions in one statement. */
import { beforeEach, expect, test } from 'vitest';
import { closeAtEnd } from '../../../../../../test/support/close-at-end.ts';
import { copyQueuedRun, insertTeam, openTestExecutions, type TestExecutions } from '../../../../test/executions.ts';
import { assign, type FreeSlots } from './assign.ts';

let t: TestExecutions;
let connectionId: string;
beforeEach(async () => {
  t = closeAtEnd(await openTestExecutions());
  connectionId = await t.newConnection();
});

const change = (text: string, ...values: unknown[]) => t.deps.db.query<Record<string, unknown>>(text, values);

/** Returns `count` free slots of one connection of the hosted pool. */
const slots = (count: number): FreeSlots => ({
  slots: Array.from({ length: count }, () => ({ connectionId, workerId: 'w', workerInstance: 'i' })),
  pool: '',
  teamId: null,
});

const newRuns = async (count: number, teamId = t.teamId): Promise<string[]> => {
  const ids: string[] = [];
  for (let n = 0; n < count; n += 1) ids.push(await t.newRun({ teamId }));
  return ids;
};

/** Returns how many assigned executions each team has. */
const perTeam = async () =>
  new Map(
    (await change(`SELECT team_id, count(*)::int AS n FROM executions WHERE phase = 'assigned' GROUP BY team_id`)).map(
      ({ team_id, n }) => [team_id, n],
    ),
  );

test('one statement fills free slots in turns of the teams, up to the limit of each team, and oldest runs first', async () => {
  const [few, limited] = [await insertTeam(t.database), await insertTeam(t.database, 1)];
  const many = await newRuns(9);
  await newRuns(2, few);
  await newRuns(4, limited);
  const { assignments, isContended } = await assign(t.deps, slots(7));
  expect([assignments.length, isContended]).toEqual([7, false]);
  expect(new Set(assignments.map(({ runToken }) => runToken)).size).toBe(7);
  expect(await perTeam()).toEqual(
    new Map([
      [t.teamId, 4],
      [few, 2],
      [limited, 1],
    ]),
  );
  const assigned = new Set(assignments.map(({ runId }) => runId));
  expect(many.filter((id) => assigned.has(id))).toEqual(many.slice(0, 4));
  const rest = await assign(t.deps, slots(20));
  expect([rest.assignments.length, rest.isContended]).toEqual([5, false]);
  expect((await assign(t.deps, slots(20))).assignments).toEqual([]);
});

test('a team with a long queue does not delay the single run of another team', async () => {
  const [first] = await newRuns(1);
  await copyQueuedRun(t.database, first ?? '', 5000);
  const other = await insertTeam(t.database);
  await change('UPDATE teams SET served_at = now() WHERE id = $1', other);
  const [single] = await newRuns(1, other);
  const { assignments } = await assign(t.deps, slots(8));
  expect(assignments.map(({ runId }) => runId)).toContain(single);
  expect(await perTeam()).toEqual(
    new Map([
      [t.teamId, 7],
      [other, 1],
    ]),
  );
});

test('statements at the same time assign each run once and exceed no limit, and none waits for another in a deadlock', async () => {
  const teams = [t.teamId];
  for (let n = 0; n < 4; n += 1) teams.push(await insertTeam(t.database, 7));
  for (const team of teams) await newRuns(9, team);
  const assigned: string[] = [];
  const fill = async () => {
    for (;;) {
      const { assignments, isContended } = await assign(t.deps, slots(6));
      assigned.push(...assignments.map(({ runId }) => runId));
      if (assignments.length === 0 && !isContended) return;
    }
  };
  await Promise.all(Array.from({ length: 6 }, fill));
  expect(new Set(assigned).size).toBe(assigned.length);
  expect([...(await perTeam()).values()].sort()).toEqual([7, 7, 7, 7, 9]);
  await change('SELECT pg_stat_clear_snapshot()');
  const [stats] = await change('SELECT deadlocks::int FROM pg_stat_database WHERE datname = current_database()');
  expect(stats?.deadlocks).toBe(0);
});

test('a statement that is killed in the middle has assigned nothing, and the next one assigns all', async () => {
  const runs = await newRuns(3);
  await t.deps.db.transaction(async (tx) => {
    // The statement has locked the team and the runs when it waits for this row.
    await tx.query('SELECT FROM executions WHERE run_id = $1 FOR UPDATE', [runs[2]]);
    const killed = assign(t.deps, slots(3)).catch((error: Error) => error);
    const waiting = () =>
      change(`SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`);
    await expect.poll(async () => (await waiting()).length).toBe(1);
    await change('SELECT pg_terminate_backend($1)', (await waiting())[0]?.pid);
    expect(await killed).toBeInstanceOf(Error);
  });
  expect(await perTeam()).toEqual(new Map());
  const [team] = await change('SELECT served_count::int AS n FROM teams WHERE id = $1', t.teamId);
  expect(team?.n).toBe(0);
  expect((await assign(t.deps, slots(3))).assignments.map(({ runId }) => runId).sort()).toEqual(runs.sort());
});
