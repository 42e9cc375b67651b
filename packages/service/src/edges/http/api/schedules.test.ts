import { randomUUIDv7 } from 'node:crypto';
import { maxLastFires, maxScheduleBytes, maxSchedules } from '@runyard/contract/limits';
import { ListScheduledAgentsResponse, ScheduledAgentItem } from '@runyard/contract/schedules/schedules';
import { beforeEach, describe, expect, test } from 'vitest';
import { aSchedule, scheduleBase as base, testSchedules } from '../../../../test/schedules.ts';
import { openTestService } from '../../../../test/service.ts';

const service = await openTestService();
const { db } = service.deps;
const { create, fires, read, insert } = testSchedules(service);
beforeEach(() => db.query('DELETE FROM schedules'));

const faultsOf = async (body: object, path = base, method = 'POST') => {
  const { errors = [] } = await service.problem(400, method, path, { body });
  return errors.map((fault) => `${fault.path}: ${fault.message}`).join('; ');
};

describe('POST /agent/schedules', () => {
  test('answers 201 with the whole schedule and its next times', async () => {
    const environment = await service.request<{ uid: string }>('POST', '/agent/environments', {
      body: { config: { name: 'E', setup_commands: ['true'] } },
    });
    const schedule = ScheduledAgentItem.parse(
      await service.ok('POST', base, {
        body: {
          ...aSchedule,
          timezone: 'europe/berlin',
          cron_schedule: ' 0 9 * * 1-5 ',
          agent_config: { environment_id: environment.body.uid },
          metadata: { a: 'b' },
          mode: 'plan',
          overlap: 'queue',
          max_live_runs: 2,
          team: true,
        },
      }),
    );
    expect(schedule).toMatchObject({
      name: 'Nightly',
      cron_schedule: '0 9 * * 1-5',
      timezone: 'Europe/Berlin',
      enabled: true,
      prompt: 'Tidy up.',
      environment: { name: 'E', setup_commands: ['true'] },
      overlap: 'queue',
      max_live_runs: 2,
      metadata: { a: 'b' },
      mode: 'plan',
      history: { last_ran: null, next_run: schedule.upcoming_runs?.[0] },
      last_spawn_error: null,
      scope: { type: 'Team' },
      created_by: { type: 'user', display_name: 'Administrator' },
      updated_by: { type: 'user', display_name: 'Administrator' },
    });
    expect(schedule.upcoming_runs).toHaveLength(5);
    for (const time of schedule.upcoming_runs ?? [])
      expect(
        new Intl.DateTimeFormat('en', { timeZone: 'Europe/Berlin', hour: 'numeric', hourCycle: 'h23' }).format(
          Date.parse(time),
        ),
      ).toBe('09');
    expect(await read(schedule.id)).toEqual(schedule);
  });

  test('is enabled by default, and paused on request', async () => {
    const { enabled, ...body } = aSchedule;
    expect(await service.ok('POST', base, { body })).toMatchObject({ enabled });
    expect(await create({ enabled: false })).toMatchObject({
      enabled: false,
      history: { next_run: null },
      upcoming_runs: [],
    });
  });

  test('creates one schedule for two requests with the same Idempotency-Key', async () => {
    const ask = (name: string) =>
      service.request<ScheduledAgentItem>('POST', base, {
        body: { ...aSchedule, name },
        headers: { 'idempotency-key': 'schedule-1' },
      });
    const [first, second] = await Promise.all([ask('A'), ask('A')]);
    expect(second?.body).toEqual(first?.body);
    expect((await ask('B')).status).toBe(409);
    expect((await service.ok<{ schedules: [] }>('GET', base)).schedules).toHaveLength(1);
  });

  test.each([
    [{ name: undefined }, /^name: /],
    [{ name: ' ' }, /^name: must not be empty/],
    [{ cron_schedule: undefined }, /^cron_schedule: /],
    [{ cron_schedule: '0 0 31 2 *' }, /^cron_schedule: never fires/],
    [{ cron_schedule: '0 0 9 * * *' }, /^cron_schedule: must have five fields/],
    [{ cron_schedule: '@every 30s' }, /^cron_schedule: must not be shorter than @every 1m/],
    [{ prompt: undefined }, /^prompt: is required unless/],
    [{ prompt: 'a\0b' }, /^prompt: must not contain the NUL/],
    [{ enabled: 'yes' }, /^enabled: /],
    [{ timezone: 'Mars/Olympus' }, /^timezone: is not the name of an IANA time zone/],
    [{ overlap: 'maybe' }, /^overlap: /],
    [{ max_live_runs: 0 }, /^max_live_runs: /],
    [{ overlap: 'cancel_previous', agent_config: { worker_host: 'box' } }, /^overlap: runs on self-hosted workers/],
    [{ agent_config: { model_id: 'nobody/knows' } }, /^agent_config\.model_id: /],
    [{ metadata: { 'no spaces': 'x' } }, /^metadata/],
    [{ cronSchedule: '@daily' }, /cron_schedule/],
  ])('answers 400 for %j and names the member', async (more, expected) => {
    expect(await faultsOf({ ...aSchedule, ...more })).toMatch(expected);
  });

  test('answers 403 for an environment of another team as for an unknown one', async () => {
    const environment = await service.request<{ uid: string }>('POST', '/agent/environments', {
      body: { config: { name: 'Theirs' } },
      key: service.otherKey,
    });
    const refusalOf = async (more: object) =>
      (await service.problem(403, 'POST', base, { body: { ...aSchedule, ...more } })).detail;
    const foreign = await refusalOf({ agent_config: { environment_id: environment.body.uid } });
    expect(foreign).toMatch(/^agent_config\.environment_id: there is no such environment/);
    expect(await refusalOf({ agent_config: { environment_id: 'x'.repeat(22) } })).toBe(foreign);
    expect(await refusalOf({ agent_uid: 'nobody' })).toMatch(/^agent_uid: there is no such agent identity/);
  });

  test('answers 409 above the limit of the team, and 413 for a large body', async () => {
    await insert({ teamId: service.teamId, count: maxSchedules - 1, dueSeconds: -3600 });
    const answers = await Promise.all([1, 2, 3].map(() => service.request('POST', base, { body: aSchedule })));
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 409, 409]);
    expect((await service.request('POST', base, { body: aSchedule, key: service.otherKey })).status).toBe(201);
    const large = { ...aSchedule, prompt: 'x'.repeat(maxScheduleBytes) };
    await service.problem(413, 'POST', base, { body: large });
    await service.problem(413, 'PUT', `${base}/${randomUUIDv7()}`, { body: large });
  });
});

describe('the routes of schedules', () => {
  test('list the schedules of the team by name', async () => {
    for (const name of ['b', 'C', 'a']) await create({ name });
    await create({ name: 'theirs' }, service.otherKey);
    const { schedules } = ListScheduledAgentsResponse.parse(await service.ok('GET', base));
    expect(schedules.map(({ name }) => name)).toEqual(['C', 'a', 'b']);
  });

  test.each(['GET', 'PUT', 'DELETE'])('answer %s with 404 for wrong ids and other teams', async (method) => {
    const theirs = await create({}, service.otherKey);
    const options = method === 'PUT' ? { body: aSchedule } : {};
    for (const id of [randomUUIDv7(), 'x', theirs.id]) await service.problem(404, method, `${base}/${id}`, options);
  });

  test.each(['pause', 'resume', 'run', 'history'])(
    'answer …/%s with 404 for unknown and malformed ids, and for ids of another team',
    async (action) => {
      const theirs = await create({}, service.otherKey);
      const method = action === 'history' ? 'GET' : 'POST';
      for (const id of [randomUUIDv7(), 'x', theirs.id]) await service.problem(404, method, `${base}/${id}/${action}`);
    },
  );
});

describe('GET /agent/schedules?include=fires', () => {
  const insertFires = (id: string, count: number) =>
    db.query(
      `INSERT INTO starts (schedule_id, due_at, outcome, reason)
       SELECT $1, now() - n * interval '1 hour', 'skipped', 'n ' || n FROM generate_series($2::int, 1, -1) AS n ORDER BY n DESC`,
      [id, count],
    );
  const list = async (query: string, key?: string) =>
    ListScheduledAgentsResponse.parse(await service.ok('GET', `${base}${query}`, key === undefined ? {} : { key }))
      .schedules;

  test('shows for each schedule its own last fires, as in its history', async () => {
    const [many, few, none] = [await create({ name: 'a' }), await create({ name: 'b' }), await create({ name: 'c' })];
    await insertFires(many.id, maxLastFires + 5);
    await insertFires(few.id, 2);
    await service.request('POST', `${base}/${few.id}/run`);
    const schedules = await list('?include=fires');
    expect(schedules.map(({ id, last_fires }) => [id, last_fires?.length])).toEqual([
      [many.id, maxLastFires],
      [few.id, 3],
      [none.id, 0],
    ]);
    for (const { id, last_fires } of schedules) expect(last_fires).toEqual((await fires(id)).slice(0, maxLastFires));
    expect(schedules[0]?.last_fires?.[0]?.reason).toBe('n 1');
    expect(schedules[1]?.last_fires?.[0]).toMatchObject({ started_by: { display_name: 'Administrator' } });
  });

  test('shows no fires without include, and no fires of schedules that the caller cannot see', async () => {
    await insertFires((await create()).id, 1);
    await insertFires((await create({}, service.otherKey)).id, 3);
    const personal = await create({ name: 'own', team: false });
    await insertFires(personal.id, 2);
    expect((await list(''))[0]).not.toHaveProperty('last_fires');
    const viewer = await service.newKey({ role: 'viewer' });
    expect((await list('?include=fires', viewer)).map(({ last_fires }) => last_fires?.length)).toEqual([1]);
  });

  test('refuses another value of include', async () => {
    const { errors } = await service.problem(400, 'GET', `${base}?include=runs`);
    expect(errors?.[0]?.path).toBe('include.0');
  });
});

describe('POST /agent/schedules/preview', () => {
  const preview = (body: object, key?: string) =>
    service.request<{ upcoming_runs: string[] }>('POST', `${base}/preview`, {
      body,
      ...(key === undefined ? {} : { key }),
    });

  test('shows the times that a schedule created now would have, and stores nothing', async () => {
    const times = { cron_schedule: ' 0 9 * * 1-5 ', timezone: 'europe/berlin' };
    const answer = await preview(times, await service.newKey({ role: 'viewer' }));
    expect([answer.status, answer.body]).toMatchObject([200, { timezone: 'Europe/Berlin' }]);
    const created = (await create(times)).upcoming_runs ?? [];
    expect(answer.body.upcoming_runs.map((time) => Date.parse(time))).toEqual(created.map((time) => Date.parse(time)));
    expect((await service.ok<{ schedules: [] }>('GET', base)).schedules).toHaveLength(1);
  });

  test('counts intervals from now', async () => {
    const { upcoming_runs: times } = (await preview({ cron_schedule: '@every 90m' })).body;
    expect(times).toHaveLength(5);
    expect(Date.parse(times[0] ?? '') - Date.now()).toBeGreaterThan(89 * 60_000);
    expect(Date.parse(times[4] ?? '') - Date.parse(times[3] ?? '')).toBe(90 * 60_000);
  });

  test.each([
    [{ cron_schedule: '0 0 31 2 *' }, /^cron_schedule: never fires/],
    [{ cron_schedule: '0 25 * * *' }, /^cron_schedule: is not a cron expression/],
    [{ cron_schedule: '' }, /^cron_schedule: must not be empty/],
    [
      { cron_schedule: 'often', timezone: 'Mars/Olympus' },
      /^cron_schedule: must have five fields.*; timezone: is not the name/,
    ],
  ])('answers 400 for %j and names the members', async (body, expected) => {
    expect(await faultsOf(body, `${base}/preview`)).toMatch(expected);
  });

  test('answers 413 for a large body', async () => {
    await service.problem(413, 'POST', `${base}/preview`, { body: { cron_schedule: ' '.repeat(5000) } });
  });
});

describe('PUT /agent/schedules/{scheduleId}', () => {
  test('keeps members that published clients do not know, and keeps agent_config if the request omits it', async () => {
    const schedule = await create({
      timezone: 'Asia/Tokyo',
      overlap: 'skip',
      max_live_runs: 3,
      metadata: { a: 'b' },
      agent_config: { name: 'kept' },
    });
    const body = { name: 'Other', cron_schedule: '@hourly', prompt: 'Else.', enabled: true };
    const answer = await service.ok('PUT', `${base}/${schedule.id}`, { body });
    expect(answer).toMatchObject({
      ...body,
      timezone: 'Asia/Tokyo',
      overlap: 'skip',
      max_live_runs: 3,
      metadata: { a: 'b' },
      agent_config: { name: 'kept' },
    });
    const changed = { ...body, timezone: 'UTC', overlap: 'allow', max_live_runs: null, metadata: {}, agent_config: {} };
    const cleared = await service.request('PUT', `${base}/${schedule.id}`, { body: changed });
    expect(cleared.body).toMatchObject({ timezone: 'UTC', overlap: 'allow', metadata: {}, agent_config: {} });
    expect(cleared.body).not.toHaveProperty('max_live_runs');
  });

  test('keeps a schedule paused if the request omits enabled', async () => {
    const { id } = await create({ enabled: false });
    const { enabled: _, ...body } = aSchedule;
    const answer = await service.request<ScheduledAgentItem>('PUT', `${base}/${id}`, { body });
    expect([answer.status, answer.body.enabled]).toEqual([200, false]);
  });

  test('requires the same members as the request that creates a schedule', async () => {
    const { id } = await create();
    for (const member of ['name', 'cron_schedule', 'prompt']) {
      const body = { ...aSchedule, [member]: undefined };
      expect(await faultsOf(body, `${base}/${id}`, 'PUT')).toMatch(new RegExp(`^${member}: `));
    }
  });

  test('keeps the next time unless the expression changes', async () => {
    const { id } = await create({ cron_schedule: '@every 24h' });
    await db.query(`UPDATE schedules SET next_run_at = now() + interval '5 minutes' WHERE id = $1`, [id]);
    const before = (await read(id)).history?.next_run;
    const put = (body: object) =>
      service.request<ScheduledAgentItem>('PUT', `${base}/${id}`, { body: { ...aSchedule, ...body } });
    expect((await put({ cron_schedule: '@every 24h', prompt: 'Else.' })).body.history?.next_run).toBe(before);
    expect((await put({ cron_schedule: '@every 25h' })).body.history?.next_run).not.toBe(before);
  });

  test('makes later runs act as the editor', async () => {
    const member = await service.newKey({ role: 'member' });
    const { id, created_by } = await create();
    const answer = await service.request<ScheduledAgentItem>('PUT', `${base}/${id}`, { body: aSchedule, key: member });
    expect(answer.body.created_by).toEqual(created_by);
    expect(answer.body.updated_by?.uid).not.toBe(created_by?.uid);
  });
});

describe('the pause and the resume of a schedule', () => {
  test('remove and restore the time of its next run, and may be repeated', async () => {
    const { id } = await create();
    const act = (action: string) => service.request<ScheduledAgentItem>('POST', `${base}/${id}/${action}`);
    for (const again of [1, 2]) {
      const paused = await act('pause');
      expect([again, paused.status, paused.body.enabled, paused.body.history?.next_run]).toEqual([
        again,
        200,
        false,
        null,
      ]);
    }
    for (const again of [1, 2]) {
      const { status, body } = await act('resume');
      expect([again, status, body.enabled, typeof body.history?.next_run]).toEqual([again, 200, true, 'string']);
    }
    expect(await service.ok('DELETE', `${base}/${id}`)).toEqual({ success: true });
    await service.problem(404, 'GET', `${base}/${id}`);
  });
});
