/** Uses the dashboard with the keyboard alone, in a real browser. */
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { on, testAutomations } from '../../packages/service/test/automations.ts';
import { startTestService, type TestService } from '../../packages/service/test/service.ts';
import { testWebhooks } from '../../packages/service/test/webhooks.ts';
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
      (await service.ok<{ schedules: { enabled: boolean }[] }>('GET', '/agent/schedules')).schedules[0]?.enabled;
    await expect.poll(enabled).toBe(true);
    await page.getByText('Paused Nightly').waitFor({ state: 'detached' });
    await press('Control+z');
    expect(await enabled()).toBe(true);
    expect(complaints).toEqual([]);
  });

  test('each key does what the list of keys says, on the screens that have it', { tags: 'long' }, async () => {
    const asking = await service.startExecution({ title: 'Asking run' });
    await reportsTo(service)(asking, ...begin, asksToRun('ls'));
    const made = async (path: string, body: object) => (await service.ok<{ uid: string }>('POST', path, { body })).uid;
    const environment = await made('/agent/environments', { config: { name: 'Web' } });
    await made('/agent/identities', { name: 'Release bot' });
    const hooks = await testWebhooks(service);
    const webhook = await hooks.create();
    const trigger = { ...on(webhook), filter: { webhook_ids: [webhook.uid], payload: { status: ['firing'] } } };
    const { uid } = await testAutomations(service, hooks.factory.uid).create([trigger]);
    await hooks.send(webhook);
    const factory = `/factories/${hooks.factory.uid}`;
    const body = await service.ok<{ schedules: { id: string }[] }>('GET', '/agent/schedules');

    await page.addInitScript('navigator.clipboard.writeText = async (text) => { globalThis.copied = text; }');
    const focused = (text: string) => async () =>
      await expect
        .poll(() =>
          page.evaluate(
            '(({ textContent, ariaLabel, id, name }) => [textContent, ariaLabel, id, name].join())(document.activeElement)',
          ),
        )
        .toContain(text);
    const copied = async () => expect(await page.evaluate('copied')).toBe(asking.runId);
    const dialog = (name: string | RegExp) => async () => {
      await page.getByRole('dialog', { name }).or(page.getByRole('alertdialog', { name })).waitFor();
      await press('Escape');
      await page.locator('[role=dialog], [role=alertdialog]').waitFor({ state: 'detached' });
    };
    const heading = (name: string | RegExp) => async () => await page.getByRole('heading', { name }).first().waitFor();
    const leave = () => page.evaluate('document.activeElement.blur()');
    const keyList = async () => {
      await press('?');
      const listed = page.getByRole('dialog', { name: 'Keys' });
      await listed.waitFor();
      const names = await listed.locator('kbd').allTextContents();
      await press('Escape');
      await listed.waitFor({ state: 'detached' });
      return names;
    };
    type Key = readonly [key: string, effect: () => Promise<unknown>];
    const screens: readonly (readonly [address: string, sign: string, ...Key[]])[] = [
      [
        '/runs',
        'Asking run',
        ['j', focused('Asking run')],
        ['j', focused('Third run')],
        ['k', focused('Asking run')],
        ['y', copied],
        ['x', () => page.getByText('1 selected').waitFor()],
        ['Shift+X', dialog('Cancel 1 live run?')],
        ['Escape', () => page.getByText('1 selected').waitFor({ state: 'detached' })],
        ['f', dialog(/Filter/)],
        ['a', heading('Asking run')],
      ],
      [
        `/runs/${asking.runId}`,
        'The agent asks to run a command',
        ['y', copied],
        ['r', dialog(/Rerun|again/i)],
        ['Shift+X', dialog('Cancel this run?')],
        ['m', focused('message')],
        ['d', focused('Reason, or what to do instead')],
      ],
      ['/runs', 'Asking run', ['/', focused('Words in title or prompt')]],
      ['/runs', 'Asking run', ['c', heading('New run')]],
      ['/schedules', 'Nightly', ['j', focused('Nightly')], ['/', focused('Search this list')]],
      ['/schedules', 'Nightly', ['c', () => page.waitForURL(/schedules\?new=true/)]],
      ['/environments', 'Web', ['c', () => page.waitForURL(/environments\?new=true/)]],
      [factory, 'Automations', ['c', heading('New automation')]],
      ['/agents', 'Release bot', ['c', dialog(/agent/i)]],
      [`/schedules/${body.schedules[0]?.id}`, 'Nightly', ['e', () => page.waitForURL(/edit=true/)]],
      ['/environments', 'Web', ['j', focused('Web')], ['/', focused('Search this list')]],
      [`/environments/${environment}`, 'Web', ['e', () => page.waitForURL(/edit=true/)]],
      [`/environments/${environment}`, 'Web', ['t', heading('Test of the setup of Web')]],
      [
        '/agents',
        'Release bot',
        ['j', focused('Runs')],
        ['e', dialog(/Release bot/)],
        ['/', focused('Search this list')],
      ],
      ['/factories', 'Test', ['j', focused('Test')], ['k', focused('Test')], ['/', focused('Search this list')]],
      [`${factory}/automations/${uid}`, 'Would it fire?', ['e', focused('name')], ['t', focused('stored')]],
      [`${factory}/webhooks/${webhook.uid}`, 'Payload', ['t', dialog(/Simulate/)], ['r', dialog(/Replay/)]],
    ];
    for (const [address, sign, ...keys] of screens) {
      await page.goto(service.baseUrl + address);
      await page.locator('header, #main').getByText(sign).first().waitFor();
      let names = await keyList();
      for (const [key, effect] of keys) {
        const name = key.replace('Shift+', '⇧');
        // Some keys are listed only while they can do something, for example while runs are selected.
        if (!names.includes(name)) names = await keyList();
        expect(names, `${address} lists ${key}`).toContain(name);
        await press(key);
        await effect();
        if (/^[mdet/]$/.test(key)) await leave();
      }
    }
    await page.goto(`${service.baseUrl}/schedules`);
    await page.getByRole('link', { name: 'Nightly' }).waitFor();
    await press('/');
    await page.keyboard.type('other');
    await page.getByText('Nothing here has "other" in its name.').waitFor();
    expect(await page.getByRole('link', { name: 'Nightly' }).count()).toBe(0);
    await press('Escape');
    await page.getByRole('link', { name: 'Nightly' }).waitFor();
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
