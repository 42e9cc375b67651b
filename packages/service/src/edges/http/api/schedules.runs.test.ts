import type { RunItem } from '@runyard/contract/runs/runs';
import type { ListScheduleFiresResponse } from '@runyard/contract/schedules/schedules';
import { beforeEach, describe, expect, test } from 'vitest';
import { aSchedule, scheduleBase as base, testSchedules } from '../../../../test/schedules.ts';
import { openTestService } from '../../../../test/service.ts';

const service = await openTestService();
const { db } = service.deps;
const { create, read, fires } = testSchedules(service);
beforeEach(() => db.query('DELETE FROM schedules'));

describe('POST /agent/schedules/{scheduleId}/run', () => {
  test('starts a run as the caller, also for a paused schedule, and does not change the times of the schedule', async () => {
    const member = await service.newKey({ role: 'member' });
    const schedule = await create({ enabled: false, overlap: 'skip' });
    for (const key of [service.key, member]) {
      const answer = await service.ok<{ run_id: string }>('POST', `${base}/${schedule.id}/run`, { key });
      const run = await service.ok<RunItem>('GET', `/agent/runs/${answer.run_id}`);
      const [fire] = await fires(schedule.id);
      expect(fire).toMatchObject({ outcome: 'started', run_id: run.run_id, started_by: { uid: run.creator?.uid } });
      expect(fire).not.toHaveProperty('due_at');
      expect(run).toMatchObject({ source: 'SCHEDULED_AGENT', schedule: { schedule_id: schedule.id } });
    }
    const [second, first] = await fires(schedule.id);
    expect(second?.started_by?.uid).not.toBe(first?.started_by?.uid);
    expect(await read(schedule.id)).toMatchObject({ enabled: false, history: { last_ran: expect.any(String) } });
  });

  test('starts one run for two requests with the same Idempotency-Key', async () => {
    const [a, b] = [await create(), await create()];
    const ask = (id: string) =>
      service.request('POST', `${base}/${id}/run`, { headers: { 'idempotency-key': 'by-hand' } });
    const [first, second] = await Promise.all([ask(a.id), ask(a.id)]);
    expect(second?.body).toEqual(first?.body);
    expect(await fires(a.id)).toHaveLength(1);
    expect((await ask(b.id)).status).toBe(409);
  });

  test('answers 403 if the run may not use its environment, and 400 if the run is not valid', async () => {
    const { id } = await create();
    const set = (uid: string) =>
      db.query('UPDATE schedules SET agent_config = $2 WHERE id = $1', [id, JSON.stringify({ environment_id: uid })]);
    await set('x'.repeat(22));
    await service.problem(403, 'POST', `${base}/${id}/run`);
    await db.query('UPDATE schedules SET agent_config = $2 WHERE id = $1', [
      id,
      JSON.stringify({ model_id: 'nobody' }),
    ]);
    await service.problem(400, 'POST', `${base}/${id}/run`);
    const theirs = await service.request<{ uid: string }>('POST', '/agent/environments', {
      body: { config: { name: 'Theirs' } },
      key: service.otherKey,
    });
    await set(theirs.body.uid);
    await service.problem(403, 'POST', `${base}/${id}/run`);
    const body = { ...aSchedule, agent_config: { environment_id: theirs.body.uid } };
    await service.problem(403, 'PUT', `${base}/${id}`, { body });
    expect(await fires(id)).toEqual([]);
  });
});

describe('GET /agent/schedules/{scheduleId}/history', () => {
  test('has pages, newest first, and accepts only cursors of the history of the same schedule', async () => {
    const [a, b] = [await create(), await create()];
    for (let n = 0; n < 5; n += 1) await service.request('POST', `${base}/${a.id}/run`);
    const page = (query: string, id = a.id) =>
      service.request<ListScheduleFiresResponse>('GET', `${base}/${id}/history?limit=2${query}`);
    const seen: string[] = [];
    for (let cursor = '', more = true; more; ) {
      const { fires: found, page_info } = (await page(cursor)).body;
      seen.push(...found.map(({ id }) => id));
      more = page_info.has_next_page;
      cursor = `&cursor=${page_info.next_cursor}`;
    }
    expect(seen).toHaveLength(5);
    expect(seen).toEqual([...new Set(seen)].sort().reverse());
    const { next_cursor } = (await page('')).body.page_info;
    expect((await page(`&cursor=${next_cursor}`, b.id)).status).toBe(400);
    expect((await page('&cursor=made.up')).status).toBe(400);
    await service.problem(400, 'GET', `${base}/${a.id}/history?limit=101`);
  });
});
