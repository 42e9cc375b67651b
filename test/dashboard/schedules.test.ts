/** Tests the screens for schedules of the dashboard in a real browser, against a real service. */
import type { ScheduledAgentItem } from '@runyard/contract/schedules/schedules';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { newPerson, teamUidOf } from '../../packages/service/test/people.ts';
import { testSchedules } from '../../packages/service/test/schedules.ts';
import { startTestService, type TestService } from '../../packages/service/test/service.ts';
import { noBrowser, useBrowser } from '../support/browser.ts';

describe.skipIf(noBrowser)(`schedules in the dashboard${noBrowser ? ` (skipped: ${noBrowser})` : ''}`, () => {
  let service: TestService;
  let page: Page;
  let complaints: string[];
  const browser = useBrowser();

  beforeAll(async () => {
    service = await startTestService();
  });
  afterAll(() => service.close());
  beforeEach(() => {
    ({ page, complaints } = browser());
  });

  const signIn = async (path: string) => {
    await page.goto(service.baseUrl + path);
    await page.getByLabel('API key', { exact: true }).fill(service.key);
    await page.getByRole('button', { name: 'Sign in', exact: true }).click();
    await page.waitForURL(service.baseUrl + path);
  };

  test('the list says in words what happened at the last due times of each schedule', async () => {
    const { create } = testSchedules(service);
    const { id } = await create({ name: 'nightly' });
    await create({ name: 'quiet' });
    await service.deps.db.query(
      `INSERT INTO starts (schedule_id, due_at, outcome, reason)
       SELECT $1, now() - n * interval '1 hour', CASE WHEN n % 2 = 0 THEN 'skipped' ELSE 'failed' END, 'because'
       FROM generate_series(5, 1, -1) AS n`,
      [id],
    );
    await signIn('/schedules');
    const row = (name: string) => page.getByRole('row').filter({ hasText: name });
    await row('nightly').getByRole('img', { name: 'Last 5 times: 3 failed, 2 skipped' }).waitFor();
    await row('quiet').getByText('no time yet').waitFor();
    await row('quiet').getByRole('switch').click();
    await page.getByText('Paused quiet').waitFor();
    await row('quiet').getByText('paused').first().waitFor();
    await page.getByRole('button', { name: /^Undo/ }).click();
    await row('quiet').getByRole('switch', { checked: true }).waitFor();
    expect(complaints).toEqual([]);
  });

  test('the form keeps the rules of others, and adds and removes those of the person', async () => {
    const { create, read } = testSchedules(service);
    const other = await newPerson(service, await teamUidOf(service), 'member');
    const kept = { on: 'failed' as const, to: [other.uid] };
    const { id } = await create({ name: 'watched', notify: [kept] });
    const me = (await service.request<{ user: { uid: string } }>('GET', '/session')).body.user.uid;
    await signIn(`/schedules/${id}?edit=true`);
    const form = page.getByRole('group', { name: 'Notify me in the inbox when' });
    await page.getByText('Rules notify 1 other person').waitFor();
    await form.getByLabel('a run fails').check();
    await form.getByLabel('3 runs in a row fail').check();
    await browser().picture('notify-form');
    await page.getByRole('button', { name: 'Save' }).click();
    await form.waitFor({ state: 'detached' });
    const added = [
      { on: 'failed', to: [me] },
      { on: 'failed_times', times: 3, to: [me] },
    ];
    expect((await read(id)).notify).toEqual([kept, ...added]);
    await page.goto(`${service.baseUrl}/schedules/${id}?edit=true`);
    await form.getByLabel('3 runs in a row fail').uncheck();
    await page.getByRole('button', { name: 'Save' }).click();
    await form.waitFor({ state: 'detached' });
    expect((await read(id)).notify).toEqual([kept, added[0]]);
    expect(complaints).toEqual([]);
  });

  test('a change or an undo that the service refuses is shown, and the switch shows the value that the service has', async () => {
    await testSchedules(service).create({ name: 'stubborn' });
    await signIn('/schedules');
    const row = page.getByRole('row').filter({ hasText: 'stubborn' });
    const refused = /schedules\/[^/]+\/(pause|resume)$/;
    await page.route(refused, (route) =>
      route.fulfill({
        status: 403,
        contentType: 'application/problem+json',
        json: { type: 'about:blank', title: 'Forbidden', status: 403, detail: 'Somebody took the right away.' },
      }),
    );
    await row.getByRole('switch').click();
    await page.getByText('Somebody took the right away.').waitFor();
    await row.getByRole('switch', { checked: true }).waitFor();
    await page.unroute(refused);
    await row.getByRole('switch').click();
    await page.getByText('Paused stubborn').waitFor();
    await page.route(refused, (route) => route.abort());
    await page.getByRole('button', { name: /^Undo/ }).click();
    await page.getByText(/^Not undone: /).waitFor();
    await row.getByRole('switch', { checked: false }).waitFor();
    const complaint = /status of 403|ERR_FAILED/;
    expect(complaints.filter((each) => !complaint.test(each))).toEqual([]);
  });

  test('the form shows the next times of the schedule that a person types, and shows a fault beside the wrong field', async () => {
    await signIn('/schedules?new=true');
    const times = page.getByRole('region', { name: 'Next times' });
    await page.getByLabel('Time zone').fill('UTC');
    await page.getByLabel('minute').fill('17');
    await times
      .getByText(/09:17 UTC/)
      .first()
      .waitFor();
    expect(await times.getByText(/09:17 UTC/).count()).toBe(5);
    const minute = page.getByLabel('Fires');
    await page.getByLabel('hour').fill('25');
    await page.getByText(/is not a cron expression/).waitFor();
    expect(await minute.getAttribute('aria-invalid')).toBe('true');
    expect(await times.count()).toBe(0);
    await page.getByLabel('hour').fill('10');
    await times
      .getByText(/10:17 UTC/)
      .first()
      .waitFor();
    await page.getByLabel('Time zone').fill('Mars/Olympus');
    await page.getByText(/is not the name of an IANA time zone/).waitFor();
    expect(await minute.getAttribute('aria-invalid')).toBeNull();
  });

  test('a schedule shows its times on two clocks and who paused it, starts a run at once, and is edited and deleted', async () => {
    const { create } = testSchedules(service);
    const { id } = await create({ name: 'weekly <b>', cron_schedule: '17 9 * * 1', timezone: 'Asia/Kolkata' });
    const button = (name: string | RegExp) => page.getByRole('button', { name });
    await signIn(`/schedules/${id}`);
    const times = page.getByRole('region', { name: 'Next times' });
    await expect.poll(() => times.getByText(/09:17 GMT\+5:30/).count()).toBe(5);
    expect(await times.getByText(/ here$/).count()).toBe(5);
    await browser().picture('schedule');
    // The first answer of the audit log is from before the pause, and arrives after it.
    const [isRead, isPaused] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    await page.route(
      /subject_uid=/,
      async (route) => {
        const response = await route.fetch();
        isRead.resolve();
        await isPaused.promise;
        await page.waitForTimeout(300);
        await route.fulfill({ response }).catch(() => {});
      },
      { times: 1 },
    );
    await page.route(new RegExp(`schedules/${id}/pause`), async (route) => {
      await isRead.promise;
      await route.fulfill({ response: await route.fetch() });
      isPaused.resolve();
    });
    await button('Pause').click();
    await page.getByText(/^None: .+ paused it on \d/).waitFor();
    await button(/^Edit/).click();
    await page.getByLabel('Name', { exact: true }).fill('weekly, later');
    await page.getByLabel('minute').fill('42');
    await page.getByLabel('Approvals').selectOption('ask');
    await page.getByLabel('Cost limit, US dollars').fill('2.5');
    await browser().picture('schedule-form');
    await button('Save').click();
    await page.getByRole('heading', { name: 'weekly, later' }).waitFor();
    const saved = await service.request<ScheduledAgentItem>('GET', `/agent/schedules/${id}`);
    expect(saved.body.agent_config).toMatchObject({ approval_policy: 'ask', max_cost_usd: 2.5 });
    await page.getByText(/^None: .+ paused it on \d/).waitFor();
    await browser().picture('schedule-paused');
    await button('Resume').click();
    await times.getByText(/09:42/).first().waitFor();
    await service.deps.db.query(
      `UPDATE schedules SET enabled = false, next_run_at = NULL, last_spawn_error = 'Paused after 10 failures in a row. The last one: x' WHERE id = $1`,
      [id],
    );
    await page.reload();
    await page.getByText(/^None: the service paused it/).waitFor();
    await button('Run now').click();
    await page.waitForURL(/\/runs\/[0-9a-f-]{36}/);
    await page.goto(`${service.baseUrl}/schedules/${id}`);
    await page.getByText('by hand').waitFor();
    await button('Delete…').click();
    await button('Delete the schedule').click();
    await page.waitForURL(`${service.baseUrl}/schedules`);
    await page.getByRole('row', { name: /nightly/ }).waitFor();
    expect(await page.getByText('weekly, later').count()).toBe(0);
    expect(complaints).toEqual([]);
  });
});
