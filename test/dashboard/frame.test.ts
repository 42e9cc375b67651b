/**
 * Tests the frame of the dashboard in a real browser: teams, notifications, sign-in and lost connections. `bin/test` runs only the tests
 * of teams and notifications.
 */
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { invite, newPerson, newTeam, teamUidOf } from '../../packages/service/test/people.ts';
import { startTestService, type TestService } from '../../packages/service/test/service.ts';
import { noBrowser, useBrowser } from '../support/browser.ts';
import { asksToRun, begin, reportsTo, signIn } from '../support/dashboard.ts';

describe.skipIf(noBrowser)(`the frame of the dashboard${noBrowser ? ` (skipped: ${noBrowser})` : ''}`, () => {
  let service: TestService;
  let page: Page;
  let complaints: string[];
  /** A second team of the administrator. */
  let second: string;
  const browser = useBrowser();

  beforeAll(async () => {
    service = await startTestService();
    second = await newTeam(service, 'Second');
  });
  afterAll(() => service.close());
  beforeEach(async () => {
    ({ page, complaints } = browser());
    await signIn(page, service);
  });
  /** Sends a request in the second team, and returns the body of the answer. */
  const inSecond = async <T>(path: string, body: Record<string, unknown>): Promise<T> =>
    (await service.request<T>('POST', path, { body, headers: { 'x-team-uid': second } })).body;

  test('a link without a team opens in the team of the person that owns the thing', async () => {
    const { run_id } = await inSecond<{ run_id: string }>('/agent/runs', { prompt: 'a', title: 'Run of the second' });
    await page.goto(`${service.baseUrl}/runs/${run_id}?tab=files#end`);
    await page.getByRole('heading', { name: 'Run of the second' }).waitFor();
    expect(page.url()).toBe(`${service.baseUrl}/runs/${run_id}?tab=files&team=${second}#end`);
    await page.getByRole('button', { name: 'Second', exact: true }).waitFor();
    const factory = await inSecond<{ uid: string }>('/factory', { name: 'Factory of the second' });
    await page.goto(`${service.baseUrl}/factories/${factory.uid}`);
    await page.getByRole('heading', { name: 'Factory of the second' }).waitFor();
    const schedule = { name: 'Nightly', cron_schedule: '0 3 * * *', prompt: 'Look.', enabled: true };
    const { id } = await inSecond<{ id: string }>('/agent/schedules', schedule);
    await page.goto(`${service.baseUrl}/schedules/${id}`);
    await page.getByRole('heading', { name: 'Nightly' }).waitFor();
    await page.getByRole('button', { name: 'Second', exact: true }).click();
    await browser().picture('team-menu');
    await page.getByRole('menuitem', { name: 'Default team, owner' }).click();
    await page.waitForURL(`${service.baseUrl}/runs?team=${await teamUidOf(service)}`);
    expect(complaints).toEqual([]);
  });

  test('a link to a thing of a team of other persons shows that there is no such thing, and names no team', async () => {
    const run = await service.newRun({ title: 'Hidden' }, service.otherKey);
    const third = await teamUidOf(service, service.otherKey);
    for (const [address, what] of [
      [`/runs/${run}`, 'run'],
      [`/runs/${run}?team=${second}`, 'run'],
      [`/runs/${run}?team=${third}`, 'page'],
      [`/runs?team=${third}`, 'page'],
    ] as const) {
      await page.goto(service.baseUrl + address);
      await page.getByRole('heading', { name: `There is no such ${what}` }).waitFor();
      expect(await page.locator('body').textContent()).not.toMatch(/Hidden|Other\b/);
    }
    expect(complaints).toEqual([]);
  });

  test('a hidden page notifies the person about a new question, and a click on the notification opens the run in its team', {
    tags: 'long',
  }, async () => {
    await page.addInitScript(() => {
      const page = globalThis as unknown as { notes: object[]; hidden: boolean; Notification: unknown };
      page.notes = [];
      page.Notification = class FakeNotification {
        static permission = 'granted';
        title: string;
        body: string;
        constructor(title: string, { body }: { body: string }) {
          this.title = title;
          this.body = body;
          page.notes.push(this);
        }
        close() {}
      };
    });
    const setHidden = (isHidden: boolean) =>
      page.evaluate(`Object.defineProperty(document, 'hidden', { value: ${isHidden}, configurable: true });
        document.dispatchEvent(new Event('visibilitychange'))`);
    const isRead = () => page.waitForResponse((answer) => answer.url().includes('state=BLOCKED&view=summary'));
    const notes = () => page.evaluate("notes.map(({ title, body }) => title + ': ' + body)");
    const { key } = await newPerson(service, second, 'member');
    const report = reportsTo(service);
    const ask = async (title: string) => {
      const runId = await service.newRun({ title, config: { approval_policy: 'ask' } }, key);
      await report(await service.claimRun(runId), ...begin, asksToRun('rm -rf build'));
      return runId;
    };
    await ask('Asked before');
    await page.clock.install();
    await page.goto(`${service.baseUrl}/schedules?team=${second}`);
    await page.getByRole('heading', { name: 'Schedules' }).waitFor();
    const first = isRead();
    await setHidden(true);
    await first;
    const runId = await ask('Release <b>it</b>');
    await page.clock.fastForward(31_000);
    await expect.poll(notes).toEqual(['A run needs your answer: Release <b>it</b>']);
    await setHidden(false);
    await page.evaluate('notes[0].onclick()');
    await page.waitForURL(`${service.baseUrl}/runs/${runId}?team=${second}`);
    await page.getByRole('heading', { name: 'Release <b>it</b>' }).waitFor();
    expect(complaints).toEqual([]);
  });

  test('a page that lost the network shows this and reconnects, and shows what has changed meanwhile', {
    tags: 'long',
  }, async () => {
    const run = await service.newRun({ title: 'Ends while offline' });
    await page.clock.install();
    await page.goto(`${service.baseUrl}/runs`);
    const row = page.getByRole('row').filter({ hasText: 'Ends while offline' });
    await row.getByText('Queued').waitFor();
    const live = (text: string | RegExp) => page.locator('header [data-part=live]').getByText(text);
    await live('Live').waitFor();
    await browser().context.setOffline(true);
    // Chromium keeps the open connection. The page gives it up after a minute of silence.
    await page.clock.fastForward(61_000);
    await live(/^Reconnecting in \d s$/).waitFor();
    await service.request('POST', `/agent/runs/${run}/cancel`);
    await page.clock.fastForward(31_000);
    await live(/^Offline since \d/).waitFor();
    await browser().picture('offline');
    await row.getByText('Queued').waitFor();
    await browser().context.setOffline(false);
    await page.clock.fastForward(31_000);
    await live('Live').waitFor();
    await row.getByText('Cancelled').waitFor();
  });

  test('a refusal with Retry-After shows a button that counts down, and then repeats the request', {
    tags: 'long',
  }, async () => {
    await page.clock.install();
    const problem = {
      type: 'about:blank',
      title: 'Too many requests',
      status: 429,
      detail: 'Slow down.',
      instance: '',
      error: 'Slow down',
      error_code: 'resource_unavailable',
      retryable: true,
      trace_id: '',
    };
    const environments = /\/agent\/environments/;
    await page.route(environments, (route) =>
      route.fulfill({ status: 429, headers: { 'retry-after': '40' }, json: problem }),
    );
    await page.goto(`${service.baseUrl}/environments`);
    await page.getByText('Slow down.').waitFor();
    await page.getByRole('button', { name: /^Try again in (40|3\d) s$/, disabled: true }).waitFor();
    await browser().picture('retry-after');
    await page.unroute(environments);
    await page.clock.fastForward(41_000);
    await page.getByRole('button', { name: 'Try again', exact: true, disabled: false }).click();
    await page.getByText('No environment yet').waitFor();
  });

  test('a team without runs sees four steps, and the third one starts its first run', { tags: 'long' }, async () => {
    const team = await newTeam(service, 'Empty');
    await page.goto(`${service.baseUrl}/?team=${team}`);
    await page.getByRole('heading', { name: 'Start your first run' }).waitFor();
    expect(await page.locator('li h2').allTextContents()).toEqual([
      'A worker is connected',
      'Add a language model',
      'Run an agent',
      'Bring your team and your events',
    ]);
    await browser().picture('onboarding');
    await page.getByRole('button', { name: 'Run it now' }).click();
    await page.waitForURL(/\/runs\/[\da-f-]{36}\?team=/);
    await page.getByRole('link', { name: 'Runs', exact: true }).first().click();
    await page.getByRole('row').filter({ hasText: 'Queued' }).waitFor();
    expect(await page.getByRole('heading', { name: 'Start your first run' }).count()).toBe(0);
    expect(complaints).toEqual([]);
  });

  test('the link of an invitation shows team and role, and a new person joins with it once', async () => {
    await page.goto(`${service.baseUrl}/settings/members?team=${second}`);
    await page.getByRole('button', { name: 'Invite', exact: true }).click();
    await page.getByLabel('Role').last().selectOption('viewer');
    await page.getByLabel('The link works for').selectOption('24');
    await browser().picture('invite-dialog');
    await page.getByRole('button', { name: 'Make the invitation' }).click();
    await page.getByRole('heading', { name: 'Copy the link of the invitation now' }).waitFor();
    const link = (await page.locator('[role=dialog] pre').textContent()) ?? '';
    expect(link).toMatch(/\/sign-in#invitation=ryi_/);
    await browser().context.clearCookies();
    await page.goto('about:blank');
    await page.goto(link);
    await page.getByRole('heading', { name: 'Join Second?' }).waitFor();
    expect(page.url()).toBe(`${service.baseUrl}/sign-in`);
    await browser().picture('invitation-link');
    await page.getByLabel('Your name').fill('Grace');
    await page.getByRole('button', { name: 'Join the team' }).click();
    await page.getByRole('heading', { name: 'You are in the team' }).waitFor();
    await page.getByRole('button', { name: 'I stored it. Open Runyard' }).click();
    await page.getByRole('button', { name: 'Grace' }).waitFor();
    await page.goto('about:blank');
    await page.goto(link);
    await page.getByText('the invitation was used or withdrawn').waitFor();
  });

  test('a person who is signed in joins the team of a link as the same person', async () => {
    const team = await teamUidOf(service, service.otherKey);
    const key = await invite(
      service,
      team,
      'member',
      await service.newKey({ teamId: service.otherTeamId, role: 'owner' }),
    );
    await page.goto(`${service.baseUrl}/sign-in#invitation=${key}`);
    await page.getByRole('button', { name: 'Join as Administrator' }).click();
    await page.getByRole('button', { name: 'Other', exact: true }).waitFor();
  });

  test('an invited person joins with the key of the invitation, and signs out everywhere', {
    tags: 'long',
  }, async () => {
    await browser().context.clearCookies();
    await page.goto(`${service.baseUrl}/inbox`);
    await page.getByRole('button', { name: 'Accept an invitation with its key' }).click();
    await page.getByLabel('Key of the invitation').fill(await invite(service, second, 'member'));
    await page.getByLabel('Your name').fill('Ada <b>Lovelace</b>');
    await browser().picture('invitation');
    await page.getByRole('button', { name: 'Join the team' }).click();
    await page.getByRole('heading', { name: 'You are in the team' }).waitFor();
    const key = (await page.locator('pre').textContent()) ?? '';
    await page.getByRole('button', { name: 'I stored it. Open Runyard' }).click();
    await page.waitForURL(`${service.baseUrl}/inbox`);
    await page.getByRole('button', { name: 'Second', exact: true }).waitFor();
    expect(await page.evaluate('JSON.stringify([localStorage, sessionStorage, document.cookie])')).not.toContain(
      'ryk_',
    );
    // A second browser of the same person.
    const other = await (await browser().context.browser()?.newContext())?.newPage();
    if (other === undefined) throw new Error('no second browser');
    await signIn(other, service, key);
    await other.goto(`${service.baseUrl}/schedules`);
    await other.getByRole('heading', { name: 'Schedules' }).waitFor();
    await page.getByRole('button', { name: 'Ada <b>Lovelace</b>' }).click();
    await page.getByRole('menuitem', { name: 'Sign out everywhere' }).click();
    await page.getByRole('heading', { name: 'Sign in' }).waitFor();
    await other.goto(`${service.baseUrl}/schedules`);
    await other.getByRole('heading', { name: 'Sign in' }).waitFor();
    await other.context().close();
    expect(complaints).toEqual([]);
  });
});
