import { maxWaitingFires } from '@runyard/contract/limits';
import type { RunItem } from '@runyard/contract/runs/runs';
import { beforeEach, describe, expect, test } from 'vitest';
import { collectMeasurements } from '../../../../test/metrics.ts';
import { scheduleBase, testSchedules } from '../../../../test/schedules.ts';
import { openTestService } from '../../../../test/service.ts';
import { claim } from '../../../runs/executions/transitions/transitions.ts';
import { measureOverdue } from '../../schedules/claim.ts';
import { cancelReplaced } from '../replace.ts';
import { startWaiting } from '../settle.ts';
import { fireDueSchedules, runSchedules } from './fire.ts';

const service = await openTestService();
const { deps } = service;
const { db } = deps;
const { create, read, fires, makeDue, insert } = testSchedules(service);
beforeEach(() => db.query('DELETE FROM schedules'));

const runOf = async (id = '') => (await service.request<RunItem>('GET', `/agent/runs/${id}`)).body;
const outcomes = async (id: string) => (await fires(id)).map(({ outcome }) => outcome);

async function fireNow(id: string): Promise<void> {
  await makeDue(id);
  await fireDueSchedules(deps);
}

describe('a schedule that is due', () => {
  test('creates one run, which shows the schedule and has the rights of its creator', async () => {
    const measured = collectMeasurements();
    const schedule = await create({ name: 'Report', metadata: { ticket: 'A-1' }, agent_config: { name: 'reporter' } });
    await makeDue(schedule.id, 5);
    expect(await measureOverdue(db)).toMatchObject([{ value: expect.closeTo(5, -1) }]);
    expect(await fireDueSchedules(deps)).toBe(1);
    expect(await fireDueSchedules(deps)).toBe(0);
    expect(await measureOverdue(db)).toMatchObject([{ value: 0 }]);
    expect(measured('runyard_schedule_lateness_seconds')).toEqual([{ labels: {}, value: expect.closeTo(5, -1) }]);
    const [fire, ...others] = await fires(schedule.id);
    expect(others).toEqual([]);
    expect(fire).toMatchObject({ outcome: 'started', due_at: expect.any(String) });
    const run = await runOf(fire?.run_id);
    expect(run).toMatchObject({
      prompt: 'Tidy up.',
      source: 'SCHEDULED_AGENT',
      state: 'QUEUED',
      schedule: { schedule_id: schedule.id, schedule_name: 'Report', cron_schedule: '0 3 * * *' },
      creator: { uid: schedule.created_by?.uid },
      metadata: { ticket: 'A-1' },
      agent_config: { name: 'reporter' },
    });
    const listed = await service.request<{ runs: RunItem[] }>('GET', `/agent/runs?schedule_id=${schedule.id}`);
    expect(listed.body.runs.map(({ run_id }) => run_id)).toEqual([fire?.run_id]);
    // The run still shows the name of the schedule after the schedule was deleted.
    await service.request('DELETE', `${scheduleBase}/${schedule.id}`);
    expect((await runOf(fire?.run_id)).schedule?.schedule_name).toBe('Report');
  });

  test('fires once for all times that it missed, and again at its next time', async () => {
    // With this expression, the next time is always minutes away, so the schedule cannot become due during the test.
    const schedule = await create({ cron_schedule: '@every 5m' });
    await makeDue(schedule.id, 3600);
    await fireDueSchedules(deps);
    await fireDueSchedules(deps);
    const { history } = await read(schedule.id);
    expect(await outcomes(schedule.id)).toEqual(['started']);
    expect(Date.parse(history?.next_run ?? '')).toBeGreaterThan(Date.now() - 1000);
    expect(Date.parse(history?.next_run ?? '')).toBeLessThanOrEqual(Date.now() + 301_000);
    expect(history?.last_ran).not.toBeNull();
  });

  test('fires only once, even if several processes fire schedules', async () => {
    const ids = await insert({ teamId: service.teamId, count: 1_000 });
    const signal = AbortSignal.timeout(60_000);
    await Promise.all(Array.from({ length: 4 }, () => runSchedules(deps, signal)));
    const [counts] = await db.query<{ fires: number; runs: number; twice: number }>(
      `SELECT count(*) AS fires, count(DISTINCT f.schedule_id) AS runs,
         (SELECT count(*) FROM (SELECT FROM runs WHERE schedule_id = ANY ($1) GROUP BY schedule_id HAVING count(*) > 1) x) AS twice
       FROM starts f WHERE f.schedule_id = ANY ($1) AND f.outcome = 'started'`,
      [ids],
    );
    expect(counts).toEqual({ fires: 1_000, runs: 1_000, twice: 0 });
  });

  test('is unchanged if the transaction that fires it is rolled back, and fires in the next round', async () => {
    const schedule = await create();
    await makeDue(schedule.id);
    const broken = {
      ...deps,
      db: {
        ...db,
        transaction: <T>(work: Parameters<typeof db.transaction<T>>[0]) =>
          db.transaction<T>(async (tx) => {
            await work(tx);
            throw new Error('killed before the commit');
          }),
      },
    };
    await expect(fireDueSchedules(broken)).rejects.toThrow('killed before the commit');
    expect(await outcomes(schedule.id)).toEqual([]);
    await fireDueSchedules(deps);
    expect(await outcomes(schedule.id)).toEqual(['started']);
  });

  test('does not fire a time again after the clock of the database was set back', async () => {
    const schedule = await create({ cron_schedule: '@hourly' });
    await fireNow(schedule.id);
    await db.query(`UPDATE schedules SET last_due_at = now() + interval '3 hours' WHERE id = $1`, [schedule.id]);
    await service.request('POST', `${scheduleBase}/${schedule.id}/pause`);
    await service.request('POST', `${scheduleBase}/${schedule.id}/resume`);
    const { history } = await read(schedule.id);
    expect(Date.parse(history?.next_run ?? '')).toBeGreaterThan(Date.now() + 3 * 3_600_000 - 60_000);
  });
});

describe('a fire whose run cannot be created', () => {
  test('is in the history and in last_spawn_error, and does not delay other schedules', async () => {
    const environment = await service.request<{ uid: string }>('POST', '/agent/environments', {
      body: { config: { name: 'gone soon' } },
    });
    const bad = await create({ agent_config: { environment_id: environment.body.uid } });
    const good = await create();
    await service.request('DELETE', `/agent/environments/${environment.body.uid}`);
    await makeDue(bad.id, 9);
    await makeDue(good.id);
    await fireDueSchedules(deps);
    const gone = expect.stringMatching(/^agent_config\.environment_id: there is no such environment/);
    expect(await fires(bad.id)).toMatchObject([{ outcome: 'failed', reason: gone }]);
    expect(await read(bad.id)).toMatchObject({
      enabled: true,
      last_spawn_error: gone,
    });
    expect(await outcomes(good.id)).toEqual(['started']);
  });

  test('pauses the schedule if it is the tenth failure in a row, and a success resets the count', async () => {
    const environment = await service.request<{ uid: string }>('POST', '/agent/environments', {
      body: { config: { name: 'comes and goes' } },
    });
    const { uid } = environment.body;
    const schedule = await create({ agent_config: { environment_id: uid } });
    const rename = (from: string, to: string) =>
      db.query('UPDATE environments SET uid = $2 WHERE uid = $1', [from, to]);
    const away = 'x'.repeat(22);
    await rename(uid, away);
    for (let n = 0; n < 9; n += 1) await fireNow(schedule.id);
    await rename(away, uid);
    await fireNow(schedule.id);
    expect(await read(schedule.id)).toMatchObject({ enabled: true, last_spawn_error: null });
    await rename(uid, away);
    for (let n = 0; n < 9; n += 1) await fireNow(schedule.id);
    expect((await read(schedule.id)).enabled).toBe(true);
    await fireNow(schedule.id);
    expect(await read(schedule.id)).toMatchObject({
      enabled: false,
      history: { next_run: null },
      last_spawn_error: expect.stringMatching(/^Paused after 10 failures in a row\. The last one: agent_config\.env/),
    });
    await rename(away, uid);
    const resumed = await service.request('POST', `${scheduleBase}/${schedule.id}/resume`);
    expect(resumed.body).toMatchObject({ enabled: true, last_spawn_error: null });
  });

  test('is refused if the executor of the schedule has left the team', async () => {
    const key = await service.newKey({ role: 'member' });
    const schedule = await create({}, key);
    await db.query('DELETE FROM team_members m USING users u WHERE u.id = m.user_id AND u.uid = $1', [
      schedule.created_by?.uid,
    ]);
    await fireNow(schedule.id);
    expect(await fires(schedule.id)).toMatchObject([
      { outcome: 'failed', reason: expect.stringContaining('may no longer start runs of the team') },
    ]);
    // An edit changes nothing about this. After another person has taken the schedule over, its runs can be created again.
    const body = { name: 'Nightly', cron_schedule: '0 3 * * *', prompt: 'Tidy up.', enabled: true };
    await service.request('PUT', `${scheduleBase}/${schedule.id}`, { body });
    await fireNow(schedule.id);
    await service.request('PUT', `${scheduleBase}/${schedule.id}`, { body: { ...body, executor_uid: 'me' } });
    await fireNow(schedule.id);
    expect(await outcomes(schedule.id)).toEqual(['started', 'failed', 'failed']);
  });

  test('is refused if the agent key that made the schedule was deleted or has expired', async () => {
    const key = await service.newKey({ kind: 'agent' });
    const schedule = await create({}, key);
    await fireNow(schedule.id);
    await db.query(`UPDATE api_keys SET expires_at = now() - interval '1 second' WHERE id::text = $1`, [
      schedule.created_by?.uid,
    ]);
    await fireNow(schedule.id);
    expect(await outcomes(schedule.id)).toEqual(['failed', 'started']);
  });

  test('does not delay other schedules if an internal error prevents the run', async () => {
    const [bad = '', lost = '', ...good] = await insert({ teamId: service.teamId, count: 6 });
    // The API never stores such values. The first makes the code that creates the run throw, the second the code that computes the next time.
    await db.query(`UPDATE schedules SET agent_config = '{"mcp_servers": {"a": null}}' WHERE id = $1`, [bad]);
    await db.query(`UPDATE schedules SET timezone = 'Mars/Olympus', cron_schedule = '@daily' WHERE id = $1`, [lost]);
    await fireDueSchedules(deps);
    for (const id of [bad, lost]) expect(await outcomes(id)).toEqual(['failed']);
    expect((await read(bad)).enabled).toBe(true);
    expect(await db.query('SELECT enabled, last_spawn_error FROM schedules WHERE id = $1', [lost])).toEqual([
      { enabled: false, last_spawn_error: expect.stringMatching(/^Paused: the expression gives no further time/) },
    ]);
    for (const id of good) expect(await outcomes(id)).toEqual(['started']);
  });

  test('does not delay other schedules if the failure cannot be recorded', async () => {
    const [bad = '', ...good] = await insert({ teamId: service.teamId, count: 3 });
    // A start for this time already exists, so the unique index refuses another one.
    await db.query(
      `INSERT INTO starts (schedule_id, due_at, outcome, reason) SELECT id, next_run_at, 'skipped', 'before' FROM schedules WHERE id = $1`,
      [bad],
    );
    await expect(fireDueSchedules(deps)).rejects.toThrow('starts_once_per_time');
    for (const id of good) expect(await outcomes(id)).toEqual(['started']);
    expect(await outcomes(bad)).toEqual(['skipped']);
    expect(await db.query('SELECT FROM runs WHERE schedule_id = $1', [bad])).toEqual([]);
  });
});

describe('while a run of the schedule is live', () => {
  test.each(['allow', 'skip', 'queue'] as const)('the policy %s decides about the next run', async (overlap) => {
    const schedule = await create({ overlap });
    await fireNow(schedule.id);
    await fireNow(schedule.id);
    const second = { allow: 'started', skip: 'skipped', queue: 'waiting' }[overlap];
    expect(await outcomes(schedule.id)).toEqual([second, 'started']);
  });

  test('max_live_runs allows that number of runs at the same time', async () => {
    const schedule = await create({ overlap: 'allow', max_live_runs: 2 });
    for (let n = 0; n < 3; n += 1) await fireNow(schedule.id);
    expect(await outcomes(schedule.id)).toEqual(['skipped', 'started', 'started']);
    expect((await fires(schedule.id))[0]?.reason).toBe('2 of 2 runs are live');
  });

  test('the policy queue starts the oldest waiting fire after the live run has ended, and limits how many fires wait', async () => {
    const schedule = await create({ overlap: 'queue' });
    for (let n = 0; n < maxWaitingFires + 2; n += 1) await fireNow(schedule.id);
    expect(await outcomes(schedule.id)).toEqual(['skipped', ...Array(maxWaitingFires).fill('waiting'), 'started']);
    await startWaiting(deps);
    expect((await outcomes(schedule.id)).filter((outcome) => outcome === 'started')).toHaveLength(1);
    const [first] = (await fires(schedule.id)).slice(-1);
    await service.request('POST', `/agent/runs/${first?.run_id}/cancel`);
    await Promise.all([startWaiting(deps), startWaiting(deps), startWaiting(deps)]);
    expect((await outcomes(schedule.id)).slice(-3)).toEqual(['waiting', 'started', 'started']);
    await service.request('POST', `${scheduleBase}/${schedule.id}/pause`);
    expect((await outcomes(schedule.id)).slice(0, 2)).toEqual(['skipped', 'skipped']);
    expect((await fires(schedule.id))[1]?.reason).toBe('the schedule was paused while it waited');
  });

  test('a waiting fire that the service cannot start does not delay the fires of other schedules', async () => {
    const schedules = [await create({ overlap: 'queue' }), await create({ overlap: 'queue' })];
    for (const { id } of [...schedules, ...schedules]) await fireNow(id);
    for (const { id } of schedules) {
      const [first] = (await fires(id)).slice(-1);
      await service.request('POST', `/agent/runs/${first?.run_id}/cancel`);
    }
    const [bad, good] = schedules.map(({ id }) => id);
    // The API never stores this `agent_config`, which makes the code that creates the run throw. With `last_ran_at` NULL, this
    // schedule is tried first.
    await db.query(
      `UPDATE schedules SET agent_config = '{"mcp_servers": {"a": null}}', last_ran_at = NULL WHERE id = $1`,
      [bad],
    );
    await startWaiting(deps);
    expect(await outcomes(bad ?? '')).toEqual(['waiting', 'started']);
    expect(await outcomes(good ?? '')).toEqual(['started', 'started']);
  });

  test('the policy cancel_previous cancels the live run, and a PENDING run as soon as it can be cancelled', async () => {
    const schedule = await create({ overlap: 'cancel_previous' });
    await fireNow(schedule.id);
    const [first] = await fires(schedule.id);
    const assignment = await service.claimRun(first?.run_id ?? '', 'PENDING');
    await fireNow(schedule.id);
    await cancelReplaced(deps);
    expect((await runOf(first?.run_id)).state).toBe('PENDING');
    const { runId, executionId, assignmentId } = assignment;
    await claim(db, { runId, executionId, args: { assignment_id: assignmentId, lease_seconds: 90 } });
    await cancelReplaced(deps);
    expect((await runOf(first?.run_id)).state).toBe('CANCELLED');
    const [second] = await fires(schedule.id);
    expect((await runOf(second?.run_id)).state).toBe('QUEUED');
    await cancelReplaced(deps);
    expect((await runOf(second?.run_id)).state).toBe('QUEUED');
  });
});

test('a team with 10,000 due schedules does not delay the schedules of another team', async () => {
  await insert({ teamId: service.teamId, count: 10_000, dueSeconds: 3600 });
  const [mine = ''] = await insert({ teamId: service.otherTeamId, count: 1, dueSeconds: 0 });
  await fireDueSchedules(deps);
  expect(await db.query('SELECT outcome FROM starts WHERE schedule_id = $1', [mine])).toEqual([{ outcome: 'started' }]);
  // In the same round, the team with many schedules fired only its share of a batch.
  const [other] = await db.query<{ fires: number }>(
    'SELECT count(*) AS fires FROM starts f JOIN schedules s ON s.id = f.schedule_id WHERE s.team_id = $1',
    [service.teamId],
  );
  expect(other?.fires).toBeLessThanOrEqual(100);
  // TRUNCATE is faster than DELETE here, which would also end the 10,000 revisions of the schedules one by one.
  await db.query('TRUNCATE schedules CASCADE');
});
