/** Uses the inbox of the dashboard in a real browser. */
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { newPerson, type Person, teamUidOf } from '../../packages/service/test/people.ts';
import { startTestService, type TestService } from '../../packages/service/test/service.ts';
import { noBrowser, useBrowser } from '../support/browser.ts';
import { asksToRun, begin, reportsTo, signIn, tooWide } from '../support/dashboard.ts';

describe.skipIf(noBrowser)(`the inbox of the dashboard${noBrowser ? ` (skipped: ${noBrowser})` : ''}`, () => {
  let service: TestService;
  let ada: Person;
  let page: Page;
  let complaints: string[];
  const browser = useBrowser();
  const pull = 'https://github.com/acme/shop/pull/7';

  beforeAll(async () => {
    service = await startTestService();
    const team = await teamUidOf(service);
    ada = await newPerson(service, team, 'member');
    const bob = await newPerson(service, team, 'member');
    const report = reportsTo(service);
    const start = async (title: string, ...events: Record<string, unknown>[]) => {
      const request = { prompt: 'p', title, config: { approval_policy: 'ask' } };
      const execution = await service.claimRun(await service.newRun(request, ada.key));
      await report(execution, ...begin, ...events);
      return execution.runToken;
    };
    const post = async (path: string, key: string, body: object) => {
      const answer = await service.request('POST', path, { key, body });
      if (answer.status >= 300) throw new Error(answer.text);
    };
    const finish = (key: string, success: boolean, summary: string) =>
      post('/harness-support/finish-task', key, { success, summary });
    await start('Clean the build folder', asksToRun('rm -rf build'));
    const request = { request_id: 'q2', kind: 'question', title: 'Which version of the library?', options: ['4', '5'] };
    await start('Upgrade the payment library', { type: 'blocked', step_id: 's', request });
    const opens = await start('Fix the rounding of invoices');
    await post('/harness-support/report-artifact', opens, {
      artifact_type: 'PULL_REQUEST',
      data: { url: pull, branch: 'rounding' },
    });
    await finish(opens, true, 'done');
    await finish(await start('Try <img src=x onerror=alert(1)>'), false, 'The tests of <b>billing</b> fail.\u202e');
    await finish(await start('Write the report'), false, 'No access to the data.');
    await service.request('PUT', '/secrets/MINE', {
      key: ada.key,
      body: { value: 'a personal value', scope: 'personal' },
    });
    await post('/agent/environments', bob.key, { config: { name: 'Shop', setup_commands: ['make'] } });
  });
  afterAll(() => service.close());
  beforeEach(async () => {
    ({ page, complaints } = browser());
    await signIn(page, service, ada.key);
    await page.goto(`${service.baseUrl}/inbox`);
    await page.getByRole('link', { name: 'Write the report' }).waitFor();
  });

  const titles = () => page.locator('tbody tr td:nth-child(2) a').allTextContents();
  const count = () =>
    page
      .getByRole('navigation', { name: 'Main' })
      .getByRole('link', { name: /^Inbox/ })
      .textContent();
  const all = [
    'Shop',
    'Write the report',
    'Try <img src=x onerror=alert(1)>',
    'Fix the rounding of invoices',
    'Upgrade the payment library',
    'Clean the build folder',
  ];

  test('lists each kind with its reason and a link, and fits narrow and enlarged pages in both themes', async () => {
    expect((await titles()).toSorted()).toEqual(all.toSorted());
    await page.getByRole('row').filter({ hasText: 'Which version of the library?' }).waitFor();
    expect(await page.locator('main img, main b').count()).toBe(0);
    expect(
      await page
        .getByRole('row')
        .filter({ hasText: 'rounding' })
        .getByRole('link', { name: 'Review' })
        .getAttribute('href'),
    ).toBe(pull);
    await expect.poll(count).toBe('Inbox6');
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme });
      await page.setViewportSize({ width: 1280, height: 800 });
      await browser().picture(`inbox-${colorScheme}`);
      // 200 % zoom of a page of 1280 px.
      await page.setViewportSize({ width: 640, height: 400 });
      await browser().picture(`inbox-zoomed-${colorScheme}`);
      expect(await tooWide(page)).toEqual([]);
      await page.setViewportSize({ width: 390, height: 844 });
      await browser().picture(`inbox-narrow-${colorScheme}`);
      expect(await tooWide(page)).toEqual([]);
    }
    expect(complaints).toEqual([]);
  });

  test('j and k move between the rows, u marks a row as read, e dismisses it, and Undo returns it', async () => {
    const rows = page.getByRole('row');
    const row = rows.filter({ hasText: 'Write the report' });
    await page.getByRole('link', { name: 'Write the report' }).focus();
    await page.keyboard.press('u');
    await row.getByRole('button', { name: 'Mark unread: Write the report' }).waitFor();
    await expect.poll(count).toBe('Inbox5');
    await page.keyboard.press('j');
    await page.keyboard.press('k');
    await page.keyboard.press('e');
    await row.waitFor({ state: 'detached' });
    await page.getByRole('button', { name: /^Undo/ }).click();
    await row.waitFor();
    await row.getByRole('button', { name: 'Mark unread: Write the report' }).click();
    await expect.poll(count).toBe('Inbox6');
    expect(complaints).toEqual([]);
  });

  test('filters by kind and by unread, and opens a thing, which marks its notification as read', async () => {
    await page.getByRole('button', { name: 'To answer' }).click();
    await expect.poll(titles).toEqual(['Upgrade the payment library', 'Clean the build folder']);
    await page.getByRole('button', { name: 'Only unread' }).click();
    await page.getByRole('link', { name: 'Upgrade the payment library' }).click();
    await page.getByRole('heading', { name: 'Upgrade the payment library' }).waitFor();
    await page.goBack();
    await expect.poll(titles).toEqual(['Clean the build folder']);
    await page.keyboard.press('g');
    await page.keyboard.press('r');
    await page.waitForURL(/\/runs/);
    await page.keyboard.press('Control+k');
    await page.getByRole('combobox').fill('inbox');
    await page.keyboard.press('Enter');
    await page.waitForURL(/\/inbox/);
    await page.getByRole('link', { name: 'Revisions to accept' }).click();
    await page.getByRole('button', { name: 'Accept this revision' }).click();
    await page.getByRole('heading', { name: 'Nothing waits for your acceptance' }).waitFor();
    expect(complaints).toEqual([]);
  });

  test('the tab of the team has the notifications of others without marks, and an empty inbox says what will be there', async () => {
    await page.getByRole('link', { name: 'For the team' }).click();
    await page.waitForURL(/tab=team/);
    await page.getByRole('link', { name: 'Clean the build folder' }).waitFor();
    expect(await page.getByRole('button', { name: /^Dismiss/ }).count()).toBe(0);
    await page.goto(`${service.baseUrl}/inbox?kind=failed`);
    await page.getByRole('link', { name: 'Write the report' }).waitFor();
    await signIn(page, service);
    await page.goto(`${service.baseUrl}/inbox`);
    await page.getByRole('heading', { name: 'Nothing needs you' }).waitFor();
    await browser().picture('inbox-empty');
    expect(complaints).toEqual([]);
  });
});
