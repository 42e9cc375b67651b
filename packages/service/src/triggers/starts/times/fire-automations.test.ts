/** Tests the schedule triggers of automations. */
import type { Automation } from '@runyard/contract/automations/automations';
import type { RunItem } from '@runyard/contract/runs/runs';
import { beforeEach, describe, expect, test } from 'vitest';
import { at, on, testAutomations } from '../../../../test/automations.ts';
import { openTestService } from '../../../../test/service.ts';
import { testWebhooks } from '../../../../test/webhooks.ts';
import { cancelReplaced } from '../replace.ts';
import { startWaiting } from '../settle.ts';
import { fireDueSchedules } from './fire.ts';

const service = await openTestService();
const { deps } = service;
const { db } = deps;
const { factory, create: createWebhook, send, log, reset } = await testWebhooks(service);
const { base, create, read, change, makeDue, fireNow, fires } = testAutomations(service, factory.uid);
beforeEach(async () => {
  await db.query('DELETE FROM automations');
  await db.query(`UPDATE runs SET state = 'SUCCEEDED' WHERE state = 'QUEUED'`);
  await reset();
});

const outcomes = async (uid: string) => (await fires(uid)).map(({ outcome }) => outcome);
const runOf = async (id = '') => (await service.request<RunItem>('GET', `/agent/runs/${id}`)).body;
const end = (id = '') => db.query(`UPDATE runs SET state = 'SUCCEEDED' WHERE id = $1`, [id]);
const nextRun = ({ schedules }: Automation, name?: string) => schedules?.find((each) => each.name === name)?.next_run;

describe('a schedule trigger that is due', () => {
  test('starts one run, which names the automation and the schedule and has the rights of the editor', async () => {
    const made = await create([at({ name: 'nightly', cron: ' 0  3 * * * ', timezone: 'europe/berlin' })]);
    const [schedule] = made.schedules ?? [];
    expect(schedule).toMatchObject({ name: 'nightly', timezone: 'Europe/Berlin', last_ran: null });
    await fireNow(made.uid);
    const [fire] = await fires(made.uid);
    expect(fire).toMatchObject({ outcome: 'started', schedule_name: 'nightly', due_at: expect.any(String) });
    expect(await runOf(fire?.run_id)).toMatchObject({
      source: 'SCHEDULED_AGENT',
      title: made.name,
      prompt: 'Look into it.',
      schedule: { schedule_id: schedule?.schedule_id, schedule_name: 'nightly' },
      metadata: { automation_id: made.uid },
      creator: { uid: made.updated_by?.uid },
    });
    const [after] = (await read(made.uid)).schedules ?? [];
    expect(after?.last_ran).not.toBeNull();
    expect(Date.parse(after?.next_run ?? '')).toBeGreaterThan(Date.now());
    const listed = await service.request<{ runs: RunItem[] }>('GET', `/agent/runs?automation_id=${made.uid}`);
    expect(listed.body.runs.map(({ run_id }) => run_id)).toEqual([fire?.run_id]);
  });

  test('starts only one run, even with several processes and several missed times', async () => {
    const uids = await Promise.all(
      Array.from({ length: 5 }, async () => (await create([at({ cron: '@every 5m' })])).uid),
    );
    for (const uid of uids) await makeDue(uid, 3600);
    await Promise.all(Array.from({ length: 4 }, () => fireDueSchedules(deps)));
    await fireDueSchedules(deps);
    for (const uid of uids) {
      expect(await outcomes(uid)).toEqual(['started']);
      const next = Date.parse(nextRun(await read(uid)) ?? '');
      expect(next).toBeGreaterThan(Date.now() - 1000);
      expect(next).toBeLessThanOrEqual(Date.now() + 301_000);
    }
  });

  test('is skipped while another transaction changes the automation, and fires in the next round', async () => {
    const { uid } = await create([at()]);
    await makeDue(uid);
    await db.transaction(async (tx) => {
      await tx.query('SELECT FROM automations WHERE uid = $1 FOR UPDATE', [uid]);
      await fireDueSchedules(deps);
      expect(await outcomes(uid)).toEqual([]);
    });
    await fireDueSchedules(deps);
    expect(await outcomes(uid)).toEqual(['started']);
  });

  test('is not listed among the schedules of the team', async () => {
    const { schedules } = await create([at()]);
    const path = `/agent/schedules/${schedules?.[0]?.schedule_id}`;
    expect((await service.request<{ schedules: unknown[] }>('GET', '/agent/schedules')).body.schedules).toEqual([]);
    await service.problem(404, 'GET', path);
    await service.problem(404, 'POST', `${path}/resume`);
    await service.problem(404, 'DELETE', path);
  });
});

describe('while a run of the automation is live', () => {
  test('the policy skip starts no run, no matter whether a delivery or a schedule started the live run', async () => {
    const webhook = await createWebhook();
    const { uid } = await create([on(webhook), at()], { overlap: 'skip' });
    await send(webhook, { body: '{"n": 1}' });
    const [live] = (await log(webhook))[0]?.runs ?? [];
    await fireNow(uid);
    expect(await fires(uid)).toMatchObject([{ outcome: 'skipped', reason: '1 of 1 runs are live' }]);
    await end(live);
    await fireNow(uid);
    await send(webhook, { body: '{"n": 2}' });
    expect((await log(webhook))[0]?.automations?.[0]).toMatchObject({ reason: 'skipped: 1 of 1 runs are live' });
    expect(await outcomes(uid)).toEqual(['started', 'skipped']);
  });

  test('the policy skip starts only one run for two schedules that are due together', async () => {
    const { uid } = await create([at({ name: 'a', cron: '@daily' }), at({ name: 'b', cron: '@daily' })], {
      overlap: 'skip',
    });
    await fireNow(uid);
    expect((await outcomes(uid)).toSorted()).toEqual(['skipped', 'started']);
  });

  test('the policy queue makes the next time wait for the end of the run', async () => {
    const { uid } = await create([at()], { overlap: 'queue' });
    await fireNow(uid);
    await fireNow(uid);
    await startWaiting(deps);
    expect(await outcomes(uid)).toEqual(['waiting', 'started']);
    // Each time that has fired has exactly one row in `starts`.
    expect(await db.query('SELECT outcome FROM starts WHERE automation_uid = $1 ORDER BY id', [uid])).toEqual([
      { outcome: 'started' },
      { outcome: 'waiting' },
    ]);
    await end((await fires(uid))[1]?.run_id);
    await Promise.all([startWaiting(deps), startWaiting(deps)]);
    expect(await outcomes(uid)).toEqual(['started', 'started']);
    const [last] = await fires(uid);
    expect(await runOf(last?.run_id)).toMatchObject({ schedule: { schedule_name: expect.any(String) } });
    await fireNow(uid);
    await change(uid, { enabled: false });
    await startWaiting(deps);
    expect(await outcomes(uid)).toEqual(['skipped', 'started', 'started']);
  });

  test('the policy cancel_previous cancels the live run', async () => {
    const { uid } = await create([at()], { overlap: 'cancel_previous' });
    await fireNow(uid);
    await fireNow(uid);
    await cancelReplaced(deps);
    const [second, first] = await fires(uid);
    expect([(await runOf(first?.run_id)).state, (await runOf(second?.run_id)).state]).toEqual(['CANCELLED', 'QUEUED']);
  });
});

describe('a change of an automation takes effect at once', () => {
  test('the schedule of a disabled automation has no next time, and gets one when the automation is enabled', async () => {
    const made = await create([at()]);
    expect(nextRun(await change(made.uid, { enabled: false }))).toBeNull();
    await makeDue(made.uid);
    await fireDueSchedules(deps);
    expect(await outcomes(made.uid)).toEqual([]);
    expect(nextRun(await change(made.uid, { enabled: true }))).toBe(nextRun(made));
  });

  test('a new expression changes the next time of a schedule, and an unchanged schedule keeps its next time and history', async () => {
    const { uid } = await create([at({ name: 'a', cron: '@every 90m' }), at({ name: 'b', cron: '@every 90m' })]);
    await fireNow(uid);
    const before = await read(uid);
    const after = await change(uid, {
      triggers: [at({ name: 'b', cron: '@every 90m' }), at({ name: 'c', cron: '@every 2h' })],
    });
    expect(after.schedules?.map(({ name }) => name)).toEqual(['b', 'c']);
    expect(nextRun(after, 'b')).toBe(nextRun(before, 'b'));
    expect((await fires(uid)).map(({ schedule_name }) => schedule_name)).toEqual(['b']);
    const other = await change(uid, { triggers: [at({ name: 'b', cron: '@every 3h' })] });
    expect(nextRun(other, 'b')).not.toBe(nextRun(before, 'b'));
  });

  test('the live run of a deleted schedule still counts for the overlap policy of the automation', async () => {
    const { uid } = await create([at({ name: 'old', cron: '@daily' })], { overlap: 'skip' });
    await fireNow(uid);
    await change(uid, { triggers: [at({ name: 'new', cron: '@daily' })] });
    expect(await fires(uid)).toEqual([]);
    await fireNow(uid);
    expect(await fires(uid)).toMatchObject([{ outcome: 'skipped', reason: '1 of 1 runs are live' }]);
  });

  test('deleting a schedule deletes its waiting fire, and a deleted automation does not fire any more', async () => {
    const { uid } = await create([at()], { overlap: 'queue' });
    await fireNow(uid);
    await fireNow(uid);
    await change(uid, { triggers: [at({ name: 'other', cron: '@daily' })] });
    expect(await db.query("SELECT id FROM starts WHERE outcome = 'waiting'")).toEqual([]);
    await service.request('DELETE', `${base}/${uid}`);
    expect(await db.query('SELECT id FROM schedules')).toEqual([]);
    await service.problem(404, 'GET', `${base}/${uid}/history`);
  });
});

test('the history of an automation has pages, and a cursor works only for the list for which it was made', async () => {
  const { uid } = await create([at()]);
  for (let n = 0; n < 3; n += 1) await fireNow(uid);
  const page = (query: string) =>
    service.request<{ fires: { id: string }[]; page_info: { next_cursor?: string } }>(
      'GET',
      `${base}/${uid}/history${query}`,
    );
  const first = (await page('?limit=2')).body;
  const last = (await page(`?limit=2&cursor=${first.page_info.next_cursor}`)).body;
  expect([...first.fires, ...last.fires]).toEqual(await fires(uid));
  expect(last.page_info).toEqual({ has_next_page: false });
  const { uid: other } = await create([at()]);
  await service.problem(400, 'GET', `${base}/${other}/history?cursor=${first.page_info.next_cursor}`);
});
