/** Tests automations that name schedules of the team with `schedule_ids`. */
import type { Automation } from '@runyard/contract/automations/automations';
import type { Factory } from '@runyard/contract/factories/factories';
import type { RunItem } from '@runyard/contract/runs/runs';
import { beforeEach, describe, expect, test } from 'vitest';
import { at, testAutomations } from '../../../../test/automations.ts';
import { scheduleBase, testSchedules } from '../../../../test/schedules.ts';
import { openTestService } from '../../../../test/service.ts';
import { testWebhooks } from '../../../../test/webhooks.ts';
import { startWaiting } from '../settle.ts';
import { fireDueSchedules } from './fire.ts';

const service = await openTestService();
const { deps } = service;
const { db } = deps;
const { factory } = await testWebhooks(service);
const automations = testAutomations(service, factory.uid);
const { base, create, read, change } = automations;
const schedules = testSchedules(service);
beforeEach(async () => {
  await db.query('DELETE FROM automations');
  await db.query('DELETE FROM schedules');
  await db.query(`UPDATE runs SET state = 'SUCCEEDED' WHERE state = 'QUEUED'`);
});

const listening = (...ids: string[]) => ({ provider: 'schedule', event: 'cron_fired', filter: { schedule_ids: ids } });
const unknown = '01900000-0000-7000-8000-000000000000';
const runOf = async (id = '') => (await service.request<RunItem>('GET', `/agent/runs/${id}`)).body;
const end = (id = '') => db.query(`UPDATE runs SET state = 'SUCCEEDED' WHERE id = $1`, [id]);
const outcomes = async (uid: string) => (await automations.fires(uid)).map(({ outcome }) => outcome);
const ownOutcomes = async (id: string) => (await schedules.fires(id)).map(({ outcome }) => outcome);

/** Fires a schedule, and starts the runs of the automations that name it. */
async function fireNow(id: string): Promise<void> {
  await schedules.makeDue(id);
  await fireDueSchedules(deps);
  await startWaiting(deps);
}

describe('a schedule that automations name', () => {
  test('starts its own run and one run of each automation, which has the rights of the executor of the automation', async () => {
    const author = await service.newKey({ role: 'member' });
    const schedule = await schedules.create({ name: 'Nightly', metadata: { of: 'schedule' } }, author);
    // The id in two triggers, and in a list `in`, still starts one run.
    const twice = { ...listening(), filter: { schedule_ids: { in: [schedule.id] } } };
    const first = await create([listening(schedule.id), twice]);
    const second = await create([twice]);
    const other = await create([at()]);
    await schedules.makeDue(schedule.id);
    await Promise.all(Array.from({ length: 4 }, () => fireDueSchedules(deps)));
    await Promise.all(Array.from({ length: 2 }, () => startWaiting(deps)));
    expect(await outcomes(other.uid)).toEqual([]);
    const [own, ...further] = await schedules.fires(schedule.id);
    expect(further).toEqual([]);
    const [fire, ...more] = await automations.fires(first.uid);
    expect(more).toEqual([]);
    expect(fire).toMatchObject({ outcome: 'started', schedule_name: 'Nightly', due_at: own?.due_at });
    expect(await outcomes(second.uid)).toEqual(['started']);
    const run = await runOf(fire?.run_id);
    expect(run).toMatchObject({
      source: 'SCHEDULED_AGENT',
      prompt: first.prompt,
      creator: { uid: first.created_by?.uid },
      executor: { uid: first.executor?.uid },
      metadata: { automation_id: first.uid, schedule_id: schedule.id },
    });
    expect(run.executor?.uid).not.toBe(schedule.executor?.uid);
    expect(run.metadata).not.toHaveProperty('of');
    // Only the own run is a run of the schedule.
    const listed = await service.request<{ runs: RunItem[] }>('GET', `/agent/runs?schedule_id=${schedule.id}`);
    expect(listed.body.runs.map(({ run_id }) => run_id)).toEqual([own?.run_id]);
    const [item] = (
      await service.request<{ schedules: { last_fires: unknown[] }[] }>('GET', `${scheduleBase}?include=fires`)
    ).body.schedules;
    expect(item?.last_fires).toHaveLength(1);
  });

  test('writes its own start and those of the automations in one transaction, and waits for an automation that is changed', async () => {
    const schedule = await schedules.create();
    const { uid } = await create([listening(schedule.id)]);
    await schedules.makeDue(schedule.id);
    await db.transaction(async (tx) => {
      await tx.query('SELECT FROM automations WHERE uid = $1 FOR UPDATE', [uid]);
      await fireDueSchedules(deps);
    });
    expect([await ownOutcomes(schedule.id), await outcomes(uid)]).toEqual([[], []]);
    await fireDueSchedules(deps);
    expect([await ownOutcomes(schedule.id), await outcomes(uid)]).toEqual([['started'], ['waiting']]);
    const again = `INSERT INTO starts (schedule_id, automation_uid, due_at, outcome)
      SELECT schedule_id, automation_uid, due_at, 'skipped' FROM starts WHERE schedule_id = $1`;
    await expect(db.query(again, [schedule.id])).rejects.toThrow('starts_once_per_time');
  });

  test('fires once for missed times, also for its automations, and a start by hand starts only its own run', async () => {
    const schedule = await schedules.create({ cron_schedule: '@every 5m' });
    const { uid } = await create([listening(schedule.id)]);
    await service.request('POST', `${scheduleBase}/${schedule.id}/run`);
    await schedules.makeDue(schedule.id, 3600);
    for (let round = 0; round < 2; round += 1) await fireDueSchedules(deps);
    await startWaiting(deps);
    expect(await outcomes(uid)).toEqual(['started']);
  });

  test('does not count the runs of automations for its own overlap policy, nor their failures for its pause', async () => {
    const schedule = await schedules.create({ overlap: 'skip' });
    const { uid } = await create([listening(schedule.id)], { overlap: 'skip' });
    await fireNow(schedule.id);
    await end((await schedules.fires(schedule.id))[0]?.run_id);
    await fireNow(schedule.id);
    expect(await ownOutcomes(schedule.id)).toEqual(['started', 'started']);
    expect(await automations.fires(uid)).toMatchObject([
      { outcome: 'skipped', reason: '1 of 1 runs are live' },
      { outcome: 'started' },
    ]);
    await db.query('UPDATE schedules SET spawn_failures = 9 WHERE id = $1', [schedule.id]);
    await end((await automations.fires(uid))[1]?.run_id);
    await db.query(`UPDATE automations SET agent = 'nobody'`);
    await schedules.makeDue(schedule.id);
    await fireDueSchedules(deps);
    await startWaiting(deps);
    expect(await outcomes(uid)).toEqual(['failed', 'skipped', 'started']);
    expect(await schedules.read(schedule.id)).toMatchObject({ enabled: true, last_spawn_error: null });
    expect((await read(uid)).last_spawn_error).toContain('nobody');
  });

  test('applies the overlap policy of the automation to times and waits with queue', async () => {
    const schedule = await schedules.create();
    const { uid } = await create([listening(schedule.id)], { overlap: 'queue' });
    for (let n = 0; n < 13; n += 1) await fireNow(schedule.id);
    expect(await outcomes(uid)).toEqual(['skipped', 'skipped', ...Array(10).fill('waiting'), 'started']);
    // The pause of the schedule ends only its own waiting starts.
    await service.request('POST', `${scheduleBase}/${schedule.id}/pause`);
    await end((await automations.fires(uid)).at(-1)?.run_id);
    await startWaiting(deps);
    expect((await outcomes(uid)).filter((outcome) => outcome === 'started')).toHaveLength(2);
  });
});

describe('an automation that names schedules', () => {
  test('keeps working when a schedule is paused or deleted, and shows the reason, and its live run still counts', async () => {
    const [gone, kept] = [await schedules.create(), await schedules.create()];
    const { uid } = await create([listening(gone.id, kept.id)], { overlap: 'skip' });
    expect((await read(uid)).problems).toBeUndefined();
    await service.request('POST', `${scheduleBase}/${gone.id}/pause`);
    expect((await read(uid)).problems).toEqual([`triggers[0]: the schedule ${gone.id} is paused`]);
    await service.request('POST', `${scheduleBase}/${gone.id}/resume`);
    await fireNow(gone.id);
    const [{ run_id: live } = {}] = await automations.fires(uid);
    await service.request('DELETE', `${scheduleBase}/${gone.id}`);
    expect((await read(uid)).problems).toEqual([`triggers[0]: the team has no schedule ${gone.id}`]);
    await fireNow(kept.id);
    expect(await outcomes(uid)).toEqual(['skipped']);
    await end(live);
    // A change keeps the id of the deleted schedule. A new schedule has another id, so it starts nothing.
    await change(uid, { prompt: 'Look again.' });
    const anew = await schedules.create();
    await fireNow(anew.id);
    await fireNow(kept.id);
    expect(await outcomes(uid)).toEqual(['started', 'skipped']);
  });

  test('starts nothing while it is disabled, and has no start for these times', async () => {
    const schedule = await schedules.create();
    const { uid } = await create([listening(schedule.id)]);
    await change(uid, { enabled: false });
    await fireNow(schedule.id);
    expect([await ownOutcomes(schedule.id), await outcomes(uid)]).toEqual([['started'], []]);
    await change(uid, { enabled: true });
    await schedules.makeDue(schedule.id);
    await fireDueSchedules(deps);
    await change(uid, { enabled: false });
    await startWaiting(deps);
    expect(await outcomes(uid)).toEqual(['skipped']);
  });

  test('starts nothing after its executor has left the team', async () => {
    const schedule = await schedules.create();
    const key = await service.newKey({ role: 'member' });
    const body = { name: 'Of a member', prompt: 'Look.', triggers: [listening(schedule.id)] };
    const made = (await service.request<Automation>('POST', base, { key, body })).body;
    await db.query('DELETE FROM team_members m USING users u WHERE u.id = m.user_id AND u.uid = $1', [
      made.executor?.uid,
    ]);
    await fireNow(schedule.id);
    expect([await ownOutcomes(schedule.id), await outcomes(made.uid)]).toEqual([['started'], ['failed']]);
  });

  test('cannot name a schedule of another team, of a person or of an automation, and does not fire if it was stored', async () => {
    const mine = await schedules.create({ team: false });
    const theirs = await schedules.create({}, service.otherKey);
    const inline = (await create([at()])).schedules?.[0]?.schedule_id ?? '';
    const ids = [unknown, 'S_of-the-public-service', mine.id, theirs.id, inline];
    for (const id of ids) {
      const body = { name: 'Prober', prompt: 'Look.', triggers: [listening(id)] };
      const { detail, errors } = await service.problem(400, 'POST', base, { body });
      expect(JSON.stringify([detail, errors])).toContain(`the team has no schedule ${id}`);
    }
    const { uid } = await create([at({ cron: '@yearly' })]);
    await db.query('UPDATE automations SET triggers = $2 WHERE uid = $1', [uid, JSON.stringify([listening(...ids)])]);
    for (const id of [mine.id, theirs.id, inline]) await fireNow(id);
    expect(await outcomes(uid)).toEqual([]);
    expect((await read(uid)).problems).toHaveLength(ids.length);
  });

  test.each(['viewer', 'agent', 'other team', 'run token'] as const)('is not made by: %s', async (who) => {
    const keys = {
      viewer: () => service.newKey({ role: 'viewer' }),
      agent: () => service.newKey({ kind: 'agent' }),
      'other team': async () => service.otherKey,
      'run token': async () => (await service.startExecution()).runToken,
    };
    const schedule = await schedules.create();
    const body = { name: who, prompt: 'Look.', triggers: [listening(schedule.id)] };
    const { status } = await service.request('POST', base, { key: await keys[who](), body });
    expect(status).toBe({ viewer: 403, agent: 403, 'other team': 404, 'run token': 401 }[who]);
    await fireNow(schedule.id);
    expect(await db.query('SELECT id FROM starts WHERE automation_uid IS NOT NULL')).toEqual([]);
  });

  test('is refused if a hundred automations name the schedule already', async () => {
    const schedule = await schedules.create();
    const { uid } = await create([listening(schedule.id)]);
    await db.query(
      `INSERT INTO automations SELECT (jsonb_populate_record(a, jsonb_build_object('uid', lpad(n::text, 22, 'x'), 'name', 'N' || n))).*
       FROM automations a, generate_series(1, 99) n WHERE a.uid = $1`,
      [uid],
    );
    const body = { name: 'One more', prompt: 'Look.', triggers: [listening(schedule.id)] };
    const { body: other } = await service.request<Factory>('POST', '/factory', { body: { name: 'Other' } });
    const path = `/factory/${other.uid}/automations`;
    const { detail } = await service.problem(400, 'POST', path, { body });
    expect(detail).toContain(`the schedule ${schedule.id} starts 100 automations already`);
    await change(uid, { prompt: 'A change of one of them is accepted.' });
    await db.query('DELETE FROM automations WHERE name = $1', ['N1']);
    expect((await service.request('POST', path, { body })).status).toBe(201);
  });
});
