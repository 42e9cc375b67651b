/** Tests the list of runs and the inbox of the dashboard in a real browser. */
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { startTestService, type TestService } from '../../packages/service/test/service.ts';
import { noBrowser, useBrowser } from '../support/browser.ts';
import { asksToRun, begin, reportsTo, signIn } from '../support/dashboard.ts';

describe.skipIf(noBrowser)(`the list of runs on the dashboard${noBrowser ? ` (skipped: ${noBrowser})` : ''}`, () => {
  let service: TestService;
  let page: Page;
  let complaints: string[];
  const browser = useBrowser();

  beforeAll(async () => {
    service = await startTestService();
  });
  afterAll(() => service.close());
  beforeEach(async () => {
    ({ page, complaints } = browser());
    await signIn(page, service);
  });
  const button = (name: string | RegExp) => page.getByRole('button', { name, exact: true });
  const open = (address: string) => page.goto(service.baseUrl + address);
  const titles = () => page.locator('tbody tr a:first-child').allTextContents();
  /** Creates runs with these titles, one after another. */
  const create = async (...names: string[]) => {
    const ids: string[] = [];
    for (const title of names) ids.push(await service.newRun({ title, prompt: 'Do it' }));
    return ids;
  };

  test('filters by the dialog, and saves, opens and deletes a view', async () => {
    const [ended = ''] = await create('View ended', 'View live');
    await service.request('POST', `/agent/runs/${ended}/cancel`);
    await open('/runs?q=View');
    await page.getByRole('link', { name: 'View live' }).waitFor();
    await page.keyboard.press('f');
    await page.getByRole('dialog').getByLabel('Cancelled').check();
    await page.getByLabel('Started by').selectOption({ label: 'Administrator' });
    await button('Show runs').click();
    await page.waitForURL(/state=CANCELLED/);
    await expect.poll(titles).toEqual(['View ended']);
    const address = page.url();
    await button('Save view').click();
    await page.getByRole('dialog').getByLabel('Name').fill('Mine, ended');
    await button('Save').click();
    const views = page.getByRole('navigation', { name: 'Views' });
    const view = views.getByRole('link', { name: 'Mine, ended' });
    await view.waitFor();
    await views.getByRole('link', { name: 'All', exact: true }).click();
    await page.getByRole('link', { name: 'View live' }).waitFor();
    await view.click();
    await expect.poll(titles).toEqual(['View ended']);
    expect(new URL(page.url()).searchParams.toString()).toBe(new URL(address).searchParams.toString());
    await button('Delete the view Mine, ended').click();
    await view.waitFor({ state: 'detached' });
    await page.getByRole('button', { name: /^Undo/ }).click();
    await view.waitFor();
    await browser().picture('saved-view');
    expect(complaints).toEqual([]);
  });

  test('selects a range by shift-click, cancels and reruns the selected runs, shows chosen columns, and counts the runs of the day', {
    tags: 'long',
  }, async () => {
    await create('Bulk 1', 'Bulk 2', 'Bulk 3', 'Bulk 4');
    await open('/runs?q=Bulk&sort_by=title&sort_order=asc');
    await page.getByRole('link', { name: 'Bulk 4' }).waitFor();
    const strip = page.getByRole('region', { name: 'Activity' });
    await strip.getByText('4', { exact: true }).waitFor();
    await strip.getByRole('img', { name: /^Runs of the last 24 hours.* 4 runs\. None failed\.$/ }).waitFor();
    const box = (name: string) => page.getByRole('checkbox', { name: `Select ${name}` });
    await box('Bulk 1').click();
    await box('Bulk 3').click({ modifiers: ['Shift'] });
    await page.getByRole('toolbar', { name: '3 runs selected' }).waitFor();
    expect(await box('Bulk 4').isChecked()).toBe(false);
    await page.keyboard.press('Shift+X');
    await page.getByRole('alertdialog', { name: 'Cancel 3 live runs?' }).waitFor();
    expect(await page.evaluate('document.activeElement.textContent')).toBe('Keep them running');
    await button('Cancel 3 runs').click();
    await expect.poll(() => page.locator('tbody').getByText('Cancelled').count()).toBe(3);
    await page.getByRole('toolbar').waitFor({ state: 'detached' });
    await page.getByRole('checkbox', { name: 'Select all loaded runs' }).click();
    await button('Rerun 3 ended').click();
    await page.getByText('3 runs started again').waitFor();
    await expect.poll(async () => (await titles()).length).toBe(7);
    await button('Columns').click();
    await page.getByRole('menuitem', { name: 'Harness' }).click();
    await page.getByRole('columnheader', { name: 'Harness' }).waitFor();
    await page.reload();
    await page.getByRole('columnheader', { name: 'Harness' }).waitFor();
    await browser().picture('bulk');
    expect(complaints).toEqual([]);
  });

  test('offers to drop the filter that excludes most runs if no run matches', { tags: 'long' }, async () => {
    await create('Lone wolf', 'Pack 1', 'Pack 2');
    await open('/runs?q=Pack&error_code=internal_error&state=QUEUED');
    await page.getByRole('heading', { name: 'No run matches' }).waitFor();
    await browser().picture('no-match');
    await button('Drop error: 2 runs').click();
    await expect.poll(async () => (await titles()).toSorted()).toEqual(['Pack 1', 'Pack 2']);
    await open('/runs?q=nowhere&state=ERROR');
    await page.getByText('The list stays empty if only one of the filters is dropped.').waitFor();
    await button('Drop all filters').click();
    await page.getByRole('link', { name: 'Lone wolf' }).waitFor();
    expect(complaints).toEqual([]);
  });

  test('lists an approval and a question in the inbox, where a link opens the whole request', async () => {
    const report = reportsTo(service);
    const ask = async (title: string, blocked: Record<string, unknown>) =>
      await report(await service.startExecution({ title, config: { approval_policy: 'ask' } }), ...begin, blocked);
    await ask('Wants to delete', asksToRun('rm -rf build'));
    const question = { request_id: 'q2', kind: 'question', title: 'Which branch?' };
    await ask('Wants to know', { type: 'blocked', step_id: 's', request: question });
    await open('/needs-answer');
    await page.waitForURL('**/inbox*');
    const card = (title: string) => page.getByRole('row').filter({ hasText: title });
    await card('Wants to delete').getByText('rm -rf build').waitFor();
    await card('Wants to know').getByText('Which branch?').waitFor();
    await page.getByRole('link', { name: 'Inbox' }).getByText('2', { exact: true }).waitFor();
    await browser().picture('inbox');
    await card('Wants to delete').getByRole('link', { name: 'Decide' }).click();
    await page.getByRole('heading', { name: 'The agent asks to run a command' }).waitFor();
    const sent = page.waitForRequest((request) => request.url().endsWith('/followups'));
    await page.getByRole('button', { name: /^Approve/ }).click();
    expect((await sent).postDataJSON()).toMatchObject({ decision: 'approve', request_id: 'q1' });
    expect(complaints).toEqual([]);
  });

  test('says which approvals are enforced, and approves for the rest of the run', async () => {
    const approval_rules = [{ push: 'acme/*' }, { command: 'rm -rf' }];
    const execution = await service.startExecution({
      title: 'Has rules',
      config: { approval_policy: 'ask', approval_rules },
    });
    const restOfRun = 'commands with the words rm -rf';
    const asks = asksToRun('rm -rf build', 'q3');
    const blocked = { ...asks, request: { ...asks.request, rest_of_run: restOfRun } };
    await reportsTo(service)(execution, ...begin, blocked);
    await open(`/runs/${execution.runId}`);
    await page.getByText('git pushes to acme/*').getByText('enforced by the gateway').waitFor();
    await page.getByText(restOfRun).getByText('advice', { exact: true }).waitFor();
    await page.getByText(/Advice: the agent asks in its own words/).waitFor();
    const sent = page.waitForRequest((request) => request.url().endsWith('/followups'));
    await page.getByRole('button', { name: 'Approve for the rest of the run' }).click();
    expect((await sent).postDataJSON()).toEqual({ decision: 'approve', allow_for: 'run', request_id: 'q3' });
    expect(complaints).toEqual([]);
  });
});
