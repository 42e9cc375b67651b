/** The dashboard in a real browser, against the real service. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { newSignInCode } from '../../packages/service/test/browser-session.ts';
import { newPerson, teamUidOf } from '../../packages/service/test/people.ts';
import { startTestService, type TestService } from '../../packages/service/test/service.ts';
import { noBrowser, useBrowser } from '../support/browser.ts';
import { asksToRun, begin, reportsTo } from '../support/dashboard.ts';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

describe.skipIf(noBrowser)(`the dashboard${noBrowser ? ` (skipped: ${noBrowser})` : ''}`, () => {
  let service: TestService;
  let page: Page;
  let complaints: string[];
  let report: ReturnType<typeof reportsTo>;
  const browser = useBrowser();

  beforeAll(async () => {
    service = await startTestService();
    report = reportsTo(service);
  });
  afterAll(() => service.close());
  beforeEach(() => {
    ({ page, complaints } = browser());
  });

  const signIn = async (path: string, key = service.key) => {
    await page.goto(service.baseUrl + path);
    await page.getByLabel('API key', { exact: true }).fill(key);
    await page.getByRole('button', { name: 'Sign in', exact: true }).click();
    await page.waitForURL(service.baseUrl + path);
  };
  const markup = '<img src=x onerror="document.title=`hacked`"><script>document.title="hacked"</script>';

  test('signs in with a key, returns to the requested address, stores the key where scripts cannot read it, and signs out', async () => {
    const run = await service.newRun({ title: 'Look here' });
    await signIn(`/runs/${run}`);
    await page.getByRole('heading', { name: 'Look here' }).waitFor();
    expect(await page.evaluate('JSON.stringify([localStorage, sessionStorage, document.cookie])')).not.toContain(
      service.key,
    );
    const [cookie] = await browser().context.cookies();
    expect(cookie).toMatchObject({ httpOnly: true, sameSite: 'Strict' });
    await page.getByRole('button', { name: 'Administrator' }).click();
    await page.getByRole('menuitem', { name: 'Sign out', exact: true }).click();
    await page.getByLabel('API key', { exact: true }).waitFor();
    await browser().context.addCookies([cookie as never]);
    await page.goto(`${service.baseUrl}/runs/${run}`);
    await page.getByRole('heading', { name: 'Sign in' }).waitFor();
    expect(complaints).toEqual([]);
  });

  test('refuses a wrong key and says why', async () => {
    await page.goto(`${service.baseUrl}/sign-in`);
    await page.getByLabel('API key', { exact: true }).fill('ryk_wrong');
    await page.getByRole('button', { name: 'Sign in', exact: true }).click();
    await page.getByText(/the key is unknown, has expired or was deleted/).waitFor();
  });

  test('a sign-in link of another person does not replace the session of the signed-in person', async () => {
    await signIn('/runs');
    const code = await newSignInCode(service, service.otherKey);
    await page.goto('about:blank');
    await page.goto(`${service.baseUrl}/runs#sign-in=${code}`);
    await page.goto(`${service.baseUrl}/sign-in#sign-in=${code}`);
    await page.waitForURL(`${service.baseUrl}/runs`);
    await page.getByRole('button', { name: 'Administrator' }).waitFor();
  });

  test('signs in with a link only after it has shown whose link it is, and the person can decline', async () => {
    await browser().context.clearCookies();
    const code = await newSignInCode(service, service.otherKey);
    await page.goto('about:blank');
    await page.goto(`${service.baseUrl}/runs#sign-in=${code}`);
    await page.getByRole('heading', { name: /^Sign in as .*\?$/ }).waitFor();
    expect(await browser().context.cookies()).toEqual([]);
    await page.getByRole('button', { name: 'Cancel' }).click();
    await page.getByLabel('API key', { exact: true }).waitFor();
    expect(await browser().context.cookies()).toEqual([]);
  });

  test('notices that another port of this host has replaced the cookie of the session', async () => {
    await signIn('/runs');
    const [own] = await browser().context.cookies();
    const other = await page.request.post(`${service.baseUrl}/api/v1/browser-sessions`, {
      data: { api_key: service.otherKey },
      headers: { origin: service.baseUrl },
    });
    expect(other.status()).toBe(200);
    await page.goto(`${service.baseUrl}/runs`);
    await page.getByRole('heading', { name: 'Is this you?' }).waitFor();
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByLabel('API key', { exact: true }).waitFor();
    await browser().context.addCookies([own as never]);
    await page.goto(`${service.baseUrl}/runs`);
    await page.getByRole('button', { name: 'Administrator' }).waitFor();
  });

  test('lists runs, updates the rows when runs change, and does not insert new runs while a row is selected', async () => {
    const execution = await service.startExecution({ title: 'Greeting & listing' });
    await signIn('/runs');
    const row = page.getByRole('row').filter({ hasText: 'Greeting & listing' });
    // To save time, the page sends some requests before its scripts are loaded. Wait until the scripts have used all answers: no
    // answer is left in `earlyAnswers`.
    await page.goto(`${service.baseUrl}/runs/${execution.runId}`);
    await page.getByRole('heading', { name: 'Greeting & listing' }).waitFor();
    await expect.poll(() => page.evaluate('earlyAnswers.size')).toBe(0);
    await page.goto(`${service.baseUrl}/runs`);
    await row.waitFor();
    expect(await page.evaluate('earlyAnswers.size')).toBe(0);
    await row.getByRole('checkbox').click();
    await page.getByText('1 selected').waitFor();
    await report(execution, ...begin);
    await row.getByText('In progress').waitFor();
    await service.newRun({ title: 'A later run' });
    await page.getByText('1 new run above. Show it').click();
    await page.getByRole('link', { name: 'A later run' }).waitFor();
    await page
      .getByRole('searchbox')
      .or(page.getByLabel(/Words in title or prompt/))
      .first()
      .fill('greeting');
    await page.keyboard.press('Enter');
    await page.waitForURL(/q=greeting/);
    await expect.poll(() => page.getByRole('link', { name: 'A later run' }).count()).toBe(0);
    expect(complaints).toEqual([]);
  });

  test('shows events of a run at once, shows markup as text, answers an approval request, and prints the whole run', async () => {
    const execution = await service.startExecution({
      title: `Danger \u202e ${markup}`,
      config: { approval_policy: 'ask' },
    });
    await report(execution, ...begin);
    await signIn(`/runs/${execution.runId}`);
    await page.getByRole('heading', { name: /Danger \[U\+202E\] <img/ }).waitFor();
    await page.getByText('Say hello, then list <b>everything</b>').waitFor();
    await report(
      execution,
      { type: 'text', step_id: 's', message_id: 'm', role: 'assistant', text: `Working: ${markup} **bold**` },
      {
        type: 'action',
        step_id: 's',
        action_id: 'a',
        category: 'command',
        name: 'shell',
        input: { command: 'echo hello; ls' },
      },
      {
        type: 'action_output',
        action_id: 'a',
        text: `\u001b[32mgreen\u001b[0m\u001b]8;;http://evil\u0007x\n${markup}\n`,
      },
    );
    await page.getByText(/Working: <img src=x/).waitFor();
    await page.locator('[data-part=markdown] strong', { hasText: 'bold' }).waitFor();
    await page.locator('[data-colour=green]', { hasText: 'green' }).waitFor();
    await report(execution, asksToRun('rm -rf build', 'q1', { options: { a: { b: { c: 'deep below' } } } }));
    await page.getByRole('heading', { name: 'The agent asks to run a command' }).waitFor();
    await page.getByText('deep below').waitFor();
    // The browser may report the scroll to the end only after the conversation has grown. The page must then still scroll to the new
    // end.
    const toEnd = await page.evaluate(`(async () => {
      const scroller = document.querySelector('[data-part=scroll]');
      scroller.firstElementChild.style.minHeight = scroller.scrollHeight + 900 + 'px';
      scroller.dispatchEvent(new Event('scroll'));
      await new Promise((resolve) => setTimeout(resolve, 300));
      return scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight;
    })()`);
    expect(toEnd).toBeLessThan(48);
    const answered = page.waitForRequest((request) => request.url().endsWith('/followups'));
    await page.getByRole('button', { name: /^Deny/ }).click();
    await page.getByLabel('Reason, or what to do instead').fill('Not now');
    await page.keyboard.press('Control+Enter');
    expect((await answered).postDataJSON()).toEqual({ decision: 'deny', message: 'Not now', request_id: 'q1' });
    await report(execution, { type: 'action_result', action_id: 'a', state: 'completed', exit_code: 0 });
    const action = page.locator('[data-part=action]', { hasText: 'echo hello' });
    await expect.poll(() => action.getAttribute('open')).toBeNull();
    await page.evaluate(`addEventListener('beforeprint', () => {
      globalThis.printed = [...document.querySelectorAll('[data-part=action]')].map(({ open }) => open);
    })`);
    await page.pdf();
    expect(await page.evaluate('printed')).toEqual([true]);
    await page.emulateMedia({ media: 'print' });
    expect(await page.getByRole('navigation', { name: 'Main' }).isVisible()).toBe(false);
    expect(await page.getByRole('textbox', { name: 'Message to the agent' }).isVisible()).toBe(false);
    const isWhole = "document.querySelector('[role=log]').getBoundingClientRect().bottom <= document.body.scrollHeight";
    expect(await page.evaluate(isWhole)).toBe(true);
    await browser().picture('printed');
    expect(await page.title()).not.toBe('hacked');
    expect(complaints).toEqual([]);
  });

  test('a viewer sees runs, but no usage, and each button for a change names the role that it needs', async () => {
    const viewer = await newPerson(service, await teamUidOf(service), 'viewer');
    const run = await service.newRun({ title: 'Look only' });
    // The page loads the code of the dialogs of a run when the first of them opens.
    const requests: string[] = [];
    page.on('request', (request) => requests.push(request.url()));
    await signIn(`/runs/${run}`, viewer.key);
    await page.getByRole('heading', { name: 'Look only' }).waitFor();
    const cancel = page.getByRole('button', { name: /^Cancel run….*Needs the role member$/, disabled: true });
    await cancel.focus();
    await page.keyboard.press('Enter');
    expect(requests).not.toContainEqual(expect.stringMatching(/\/actions-[^/]*\.js$/));
    expect(requests).toContainEqual(expect.stringMatching(/\/run-screen-[^/]*\.js$/));
    expect(await page.getByRole('textbox', { name: 'Message to the agent' }).isDisabled()).toBe(true);
    await page.keyboard.press('g');
    await page.keyboard.press('u');
    await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'Schedules' }).click();
    await page
      .getByRole('button', { name: /^New schedule.*Needs the role member$/, disabled: true })
      .first()
      .waitFor();
    expect(await page.getByRole('link', { name: 'Usage' }).count()).toBe(0);
    expect(page.url()).toBe(`${service.baseUrl}/schedules`);
  });

  test('a second tab opens no event stream: it gets live events from the first tab', async () => {
    const run = await service.newRun({ title: 'Seen in two tabs' });
    await signIn('/runs');
    await page.getByText('Live', { exact: true }).first().waitFor();
    const second = await browser().context.newPage();
    let streams = 0;
    second.on('request', (request) => {
      if (request.url().endsWith('/agent/runs/events')) streams += 1;
    });
    await second.goto(`${service.baseUrl}/runs`);
    const row = second.getByRole('row').filter({ hasText: 'Seen in two tabs' });
    await row.getByText('Queued').waitFor();
    await second.locator('header [data-part=live]').getByText('Live', { exact: true }).waitFor();
    await service.request('POST', `/agent/runs/${run}/cancel`);
    await row.getByText('Cancelled').waitFor();
    expect(streams).toBe(0);
  });

  test('a narrow page loads and renders only the rows near the visible rows', async () => {
    for (let round = 0; round < 11; round += 1)
      await Promise.all(Array.from({ length: 20 }, () => service.newRun({ title: 'One of many' })));
    await page.setViewportSize({ width: 390, height: 844 });
    await signIn('/runs?sort_by=created_at');
    await page.getByRole('link', { name: 'One of many' }).first().waitFor();
    await page.getByText('100 runs loaded.').waitFor();
    expect(await page.locator('tbody tr').count()).toBeLessThan(60);
    // The page knows the heights of rows only after it has rendered them. So the end of the list moves, and one scroll to the end is not
    // enough.
    const toEnd = () => page.locator('#main').evaluate((main) => main.scrollTo({ top: main.scrollHeight }));
    // On a busy machine, the next page can arrive too before the text is read.
    await expect
      .poll(() => toEnd().then(() => page.getByText(/runs loaded/).textContent()))
      .toMatch(/2\d\d runs loaded\./);
    expect(await page.locator('tbody tr').count()).toBeLessThan(80);
  });

  test('shows live events again when a message continues an ended run', async () => {
    const execution = await service.startExecution({ title: 'Goes on' });
    await report(execution, ...begin);
    await signIn(`/runs/${execution.runId}`);
    await page.getByText('Say hello, then list').first().waitFor();
    await service.request('POST', `/agent/runs/${execution.runId}/cancel`);
    await page.locator('[data-state=CANCELLED][data-large]').waitFor();
    await page.getByRole('button', { name: 'Rerun…' }).first().waitFor();
    await page.getByRole('textbox', { name: 'Message to the agent' }).fill('Continue');
    await page.getByRole('button', { name: 'Send message' }).click();
    await page.locator('[data-large]:is([data-state=QUEUED], [data-state=PENDING])').waitFor();
  });

  test('asks in a dialog before it cancels a run, and the button that does not cancel has the focus', async () => {
    const run = await service.newRun({ title: 'To be cancelled' });
    await signIn(`/runs/${run}`);
    await page.getByRole('button', { name: 'Cancel run…' }).click();
    await page.getByRole('alertdialog').waitFor();
    expect(await page.evaluate('document.activeElement.textContent')).toBe('Keep it running');
    await page.getByRole('button', { name: 'Cancel the run' }).click();
    await page.locator('[data-state=CANCELLED][data-large]').waitFor();
  });

  test('starts a run from the form, and shows the same request as a curl command', async () => {
    await signIn('/runs/new');
    await page.getByLabel('Prompt').fill("Say 'hello'");
    await page.getByText(`"prompt":"Say '\\''hello'\\''"`).waitFor();
    await page.getByRole('button', { name: /Start run/ }).click();
    await page.waitForURL(/\/runs\/[\da-f-]{36}$/);
    await page.getByText("Say 'hello'").first().waitFor();
  });

  test('the command palette has the words that a person types before it is loaded, and no key of them runs a command', async () => {
    await signIn('/runs');
    await page.getByRole('heading', { name: 'Runs' }).waitFor();
    const late = Promise.withResolvers<void>();
    await page.route(/\/app\/palette-/, async (route) => {
      await late.promise;
      await route.continue();
    });
    await page.keyboard.press('Control+k');
    await page.keyboard.type('cacheex');
    await page.keyboard.press('Backspace');
    late.resolve();
    const field = page.getByRole('combobox', { name: 'Words, an id or an address' });
    await expect.poll(() => field.inputValue()).toBe('cachee');
    await page.keyboard.type('d');
    expect(await field.inputValue()).toBe('cacheed');
    expect(new URL(page.url()).pathname).toBe('/runs');
    await page.keyboard.press('Escape');
    // The same holds for the search of a conversation.
    const lateFind = Promise.withResolvers<void>();
    await page.route(/\/app\/find-panel-/, async (route) => {
      await lateFind.promise;
      await route.continue();
    });
    const run = await service.newRun({ title: 'Searched' });
    await page.goto(`${service.baseUrl}/runs/${run}`);
    await page.getByRole('heading', { name: 'Searched' }).waitFor();
    await page.keyboard.press('Control+f');
    await page.keyboard.type('rm');
    lateFind.resolve();
    await expect.poll(() => page.getByRole('textbox', { name: 'Find in the conversation' }).inputValue()).toBe('rm');
    expect(await page.getByRole('dialog').count()).toBe(0);
  });

  test('the command palette finds runs, screens and the API reference with the keyboard alone, and stays in the team of the current address', async () => {
    const run = await service.newRun({ title: 'Needle in a haystack' });
    const { body: schedule } = await service.request<{ id: string }>('POST', '/agent/schedules', {
      body: { name: 'Needle of administrators', cron_schedule: '0 3 * * 1', prompt: 'Look.' },
    });
    const team = `?team=${await teamUidOf(service)}`;
    await signIn(`/runs${team}`);
    await page.getByRole('link', { name: 'Needle in a haystack' }).waitFor();
    await page.keyboard.press('Control+k');
    await page.getByRole('combobox', { name: 'Words, an id or an address' }).fill('needle');
    await page.getByRole('option', { name: /Needle in a haystack/ }).waitFor();
    await page.keyboard.press('Enter');
    await page.waitForURL(`${service.baseUrl}/runs/${run}${team}`);
    const field = page.getByRole('combobox', { name: 'Words, an id or an address' });
    const groups = page.locator('[data-part=group]');
    await page.keyboard.press('Control+k');
    await page.getByText('# runs only').waitFor();
    await field.fill('#needle');
    await page.getByRole('option', { name: /Needle in a haystack/ }).waitFor();
    expect(await groups.allTextContents()).toEqual(['Runs']);
    await field.fill('@adm');
    await page.getByRole('option', { name: 'Administrator' }).waitFor();
    expect(await groups.allTextContents()).toEqual(['People']);
    const paste = async (text: string) => {
      await field.focus();
      await page.evaluate(`{
        const clipboardData = new DataTransfer();
        clipboardData.setData('text', ${JSON.stringify(text)});
        document.activeElement.dispatchEvent(new ClipboardEvent('paste', { clipboardData, bubbles: true }));
      }`);
    };
    await paste(schedule.id);
    await page.waitForURL(`${service.baseUrl}/schedules/${schedule.id}${team}`);
    await page.keyboard.press('Control+k');
    await paste(`${service.baseUrl}/runs/${run}?tab=files`);
    await page.waitForURL(`${service.baseUrl}/runs/${run}?tab=files`);
    await page.goto(`${service.baseUrl}/runs/${run}${team}`);
    await page.getByRole('heading', { name: 'Needle in a haystack' }).waitFor();
    await page.keyboard.press('g');
    await page.keyboard.press('s');
    await page.waitForURL(`${service.baseUrl}/schedules${team}`);
    await page.getByRole('button', { name: 'Switch between light and dark' }).click();
    await page.keyboard.press('Control+k');
    await page.getByRole('combobox', { name: 'Words, an id or an address' }).fill('api reference');
    await page.keyboard.press('Enter');
    await page.waitForURL(`${service.baseUrl}/docs`);
    const look = "document.documentElement.dataset.theme + getComputedStyle(document.querySelector('header')).position";
    expect(await page.evaluate(look)).toBe('darksticky');
    await page.getByRole('banner').getByRole('link', { name: 'Dashboard' }).click();
    await page.waitForURL(`${service.baseUrl}/runs`);
  });

  test('creates a schedule, a factory and an environment', async () => {
    await signIn('/schedules?new=true');
    await page.getByLabel('Name').fill('nightly');
    await page.getByLabel('Prompt').fill('Update');
    await page.getByRole('button', { name: 'Create schedule' }).click();
    await page.getByRole('heading', { name: 'nightly' }).waitFor();
    await page.goto(`${service.baseUrl}/factories`);
    await page.getByLabel('Name of the new factory').fill('Billing');
    await page.getByRole('button', { name: 'New factory' }).click();
    await page.getByRole('heading', { name: 'Billing' }).waitFor();
    await page.getByRole('button', { name: 'New webhook' }).click();
    await page.getByLabel('Name', { exact: true }).fill('GitHub');
    await page.getByRole('button', { name: 'Create webhook' }).click();
    await page.getByText('It is shown only once.').waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'I stored it' }).click();
    await page.getByRole('link', { name: 'GitHub' }).waitFor();
    await page.goto(`${service.baseUrl}/environments?new=true`);
    await page.getByLabel('Name', { exact: true }).fill('web');
    await page.getByRole('button', { name: 'Create environment' }).click();
    await page.getByRole('heading', { name: 'web' }).waitFor();
    expect(complaints).toEqual([]);
  });

  test('screens have no serious accessibility fault and do not break the content security policy', async () => {
    const run = await service.newRun({ title: 'Seen by all' });
    await signIn('/runs');
    const screens = [
      `/runs/${run}`,
      '/runs',
      '/runs/new',
      '/inbox',
      '/schedules',
      '/factories',
      '/environments',
      '/agents',
      '/workers',
      '/usage',
      '/settings/members',
      '/settings/keys',
      '/settings/secrets',
    ];
    const found: string[] = [];
    for (const [index, path] of screens.entries()) {
      await page.goto(service.baseUrl + path);
      await page.getByRole('main').waitFor();
      await page.locator('h1').first().waitFor();
      await page.waitForTimeout(300);
      // Load axe through the debugger, because the content security policy of the page does not apply to code from there.
      await page.evaluate(axe);
      // In `bin/test-long`, `screens.test.ts` checks each screen in both themes.
      const scheme = index % 2 === 0 ? 'light' : 'dark';
      await page.emulateMedia({ colorScheme: scheme });
      const faults = await page.evaluate<string[]>(
        `axe.run().then(({ violations }) => violations.filter(({ impact }) => impact === 'serious' || impact === 'critical').map(({ id, nodes }) => id + ': ' + nodes.slice(0, 2).map(({ html }) => html.slice(0, 160)).join(' | ')))`,
      );
      found.push(...faults.map((fault) => `${path} ${scheme} ${fault}`));
    }
    expect(found).toEqual([]);
    expect(complaints).toEqual([]);
  });
});
