/** Uses the dashboard with the keyboard alone, in a real browser. */
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { startTestService, type TestService } from '../../packages/service/test/service.ts';
import { noBrowser, useBrowser } from '../support/browser.ts';
import { asksToRun, begin, reportsTo, signIn } from '../support/dashboard.ts';

describe.skipIf(noBrowser)(`the keyboard in the dashboard${noBrowser ? ` (skipped: ${noBrowser})` : ''}`, () => {
  let service: TestService;
  let page: Page;
  let complaints: string[];
  const browser = useBrowser();
  const press = async (...keys: string[]) => {
    for (const key of keys) await page.keyboard.press(key);
  };

  beforeAll(async () => {
    service = await startTestService();
    for (const title of ['First run', 'Second run', 'Third run'])
      await service.newRun({ title, prompt: `Do <b>${title}</b>` });
    await service.request('POST', '/agent/schedules', {
      body: { name: 'Nightly', cron_schedule: '0 3 * * *', prompt: 'Look.', enabled: true },
    });
  });
  afterAll(() => service.close());
  beforeEach(async () => {
    ({ page, complaints } = browser());
    await signIn(page, service);
  });

  test('the space key previews the run beside the list, and the bracket keys open the next older and the next newer run', async () => {
    await page.goto(`${service.baseUrl}/runs`);
    await page.getByRole('link', { name: 'Third run' }).waitFor();
    await press('j', 'Space');
    const peek = page.getByRole('complementary', { name: 'Preview of Third run' });
    await peek.getByText('Do <b>Third run</b>').waitFor();
    await browser().picture('peek');
    await press('j');
    await page.getByRole('complementary', { name: 'Preview of Second run' }).waitFor();
    await press('Escape');
    await page.getByRole('complementary').waitFor({ state: 'detached' });
    await press('Enter');
    await page.getByRole('heading', { name: 'Second run' }).waitFor();
    await press('[');
    await page.getByRole('heading', { name: 'First run' }).waitFor();
    await press('[');
    await page.getByText('The list of runs has no older run loaded.').waitFor();
    await press(']', ']');
    await page.getByRole('heading', { name: 'Third run' }).waitFor();
    await press('?');
    const keys = page.getByRole('dialog', { name: 'Keys' });
    expect(await keys.textContent()).toMatch(/\[Older run of the list\]Newer run of the list/);
    await press('Escape');
    await page.goBack();
    await page.getByRole('link', { name: 'Third run' }).waitFor();
    await press('Space');
    await peek.waitFor();
    expect(complaints).toEqual([]);
  });

  test('Enter and space act on the focused button or check box', async () => {
    await page.goto(`${service.baseUrl}/runs`);
    await page.getByRole('link', { name: 'Third run' }).waitFor();
    await page.getByRole('button', { name: 'Save view' }).focus();
    await press('Enter');
    await page.getByRole('dialog').waitFor();
    await press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await page.getByRole('checkbox', { name: 'Select Second run' }).focus();
    await press('Space');
    await page.getByRole('checkbox', { name: 'Select Second run', checked: true }).waitFor();
    expect(await page.getByRole('complementary').count()).toBe(0);
    expect(complaints).toEqual([]);
  });

  test('Ctrl Z undoes a change while its message is shown, and does nothing later', async () => {
    await page.goto(`${service.baseUrl}/schedules`);
    await page.getByRole('link', { name: 'Nightly' }).waitFor();
    await page
      .getByRole('switch')
      .or(page.getByRole('button', { name: /Pause/ }))
      .first()
      .focus();
    await press('Space');
    await page.getByText('Paused Nightly').waitFor();
    await press('Control+z');
    const enabled = async () =>
      (await service.request<{ schedules: { enabled: boolean }[] }>('GET', '/agent/schedules')).body.schedules[0]
        ?.enabled;
    await expect.poll(enabled).toBe(true);
    await page.getByText('Paused Nightly').waitFor({ state: 'detached' });
    await press('Control+z');
    expect(await enabled()).toBe(true);
    expect(complaints).toEqual([]);
  });

  test('Ctrl Enter approves the request of the agent, but not while the person writes a message', async () => {
    const execution = await service.startExecution({ title: 'Asks', config: { approval_policy: 'ask' } });
    await reportsTo(service)(execution, ...begin, asksToRun('rm -rf build'));
    const answers: unknown[] = [];
    page.on('request', (request) => {
      if (request.url().endsWith('/followups')) answers.push(request.postDataJSON());
    });
    await page.goto(`${service.baseUrl}/runs/${execution.runId}`);
    await page
      .getByRole('button', { name: /^Approve/ })
      .and(page.locator(':enabled'))
      .waitFor();
    await page.getByRole('textbox', { name: 'Message to the agent' }).focus();
    await press('Control+Enter');
    await page.getByRole('heading', { name: 'Asks', exact: true }).click();
    await press('Control+Enter');
    await expect.poll(() => answers).toEqual([{ decision: 'approve', request_id: 'q1' }]);
    expect(complaints).toEqual([]);
  });
});
