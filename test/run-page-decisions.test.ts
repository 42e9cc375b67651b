/** The request that a person decides about on a run's page, when the agent tries to show something else than it does. */
import type { Page } from 'playwright-core';
import { beforeEach, describe, expect, test } from 'vitest';
import type { TestService } from '../packages/service/test/service.ts';
import { noBrowser } from './support/browser.ts';
import { shell, useRunPage } from './support/run-page.ts';

describe.skipIf(noBrowser)(`deciding on a run's page${noBrowser ? ` (skipped: ${noBrowser})` : ''}`, () => {
  const { browser, report, open, atWork, inbox, ...current } = useRunPage();
  let service: TestService;
  let page: Page;
  beforeEach(() => {
    service = current.service();
    page = current.page();
  });

  const permission = (id: string, title: string, action: Record<string, unknown> = {}) => ({
    type: 'blocked',
    step_id: 's',
    request: { request_id: id, kind: 'permission', title, action: { ...shell, input: {}, ...action } },
  });
  const waits = () => page.getByRole('heading', { name: 'The agent waits for your decision' }).waitFor();

  test('does not take the second click of a double click as the approval of the next request', async () => {
    const execution = await atWork();
    await report(execution, permission('first', 'Run the tests'));
    await open(execution.runId);
    await waits();
    // The agent asks again before the page has read the run.
    await page.route(
      '**/followups',
      async (route) => {
        const response = await route.fetch();
        const decided = {
          type: 'decided',
          step_id: 's',
          kind: 'permission',
          title: 'a',
          decision: 'approve',
          by: 'person',
        };
        await report(execution, { ...decided, request_id: 'first' }, permission('second', 'Delete everything'));
        await route.fulfill({ response });
      },
      { times: 1 },
    );
    await page.evaluate(`new MutationObserver(() => {
      if (document.getElementById('ask-title').textContent !== 'Delete everything') return;
      window.hasClicked = true;
      for (let click = 0; click < 3; click += 1) setTimeout(() => document.getElementById('approve').click(), click * 50);
    }).observe(document.getElementById('ask-title'), { childList: true })`);
    const posts = current.posts('/followups');
    await page.getByRole('button', { name: 'Approve' }).click();
    await page.locator('#ask-title', { hasText: 'Delete everything' }).waitFor();
    await page.waitForFunction('window.hasClicked');
    await expect.poll(() => page.getByRole('button', { name: 'Deny' }).isEnabled()).toBe(true);
    await page.getByRole('button', { name: 'Deny' }).click();
    await expect.poll(() => posts.length).toBe(2);
    await page.locator('#ask').waitFor({ state: 'hidden' });
    expect(await inbox(execution)).toMatchObject([
      { decision: 'approve', answers: 'first' },
      { decision: 'deny', answers: 'second' },
    ]);
  });

  test.each([
    ['a command that ends a title about something else', 'Run echo rm -rf build', 'rm -rf build', 'rm -rf build'],
    ['a command of which the title shows more than its letters', 'Run the tests', 's', 's'],
    [
      'characters that draw nothing or act on a terminal, by their names, and emoji as they are',
      'ls',
      'ls\u200d \u{e0041}\u00ad\u206a \u3164\u2800 \u001b[8m;\rx ⚠️ 👩🏽‍🔧\n\tok',
      'ls[U+200D] [U+E0041][U+00AD][U+206A] [U+3164][U+2800] [U+001B][8m;[U+000D]x ⚠️ 👩🏽‍🔧\n\tok',
    ],
    ['the length of spaces', 'Say it', `echo safe${' '.repeat(30_000)}; rm -rf b`, 'echo safe[30000 spaces]; rm -rf b'],
  ])('shows before a decision %s', async (_, title, command, shown) => {
    const execution = await atWork();
    await report(execution, permission('q', title, { input: { command } }));
    await open(execution.runId);
    await waits();
    expect(await page.locator('#ask-input').textContent()).toBe(shown);
    expect(await page.locator('#ask-input').isVisible()).toBe(true);
  });

  test('shows the lines of a command, and all of a long one above the buttons', async () => {
    const execution = await atWork();
    const command = `${'echo safe\n'.repeat(300)}rm -rf important`;
    await report(
      execution,
      { type: 'action', step_id: 's', ...shell, action_id: 'a', input: { command: 'echo safe\nrm -rf important' } },
      permission('q', 'Run the tests', { id: 'other', input: { command } }),
    );
    await open(execution.runId);
    await waits();
    const heightOf = (selector: string) => page.locator(selector).evaluate((found) => found.scrollHeight);
    const shownOf = (selector: string) => page.locator(selector).evaluate((found) => found.clientHeight);
    expect(await page.locator('#ask-input').textContent()).toBe(command);
    expect(await heightOf('#ask-input')).toBeLessThanOrEqual((await shownOf('#ask-input')) + 1);
    expect(await shownOf('#ask-input')).toBeGreaterThan(300 * 10);
    expect(await page.locator('.act code').textContent()).toBe('echo safe\nrm -rf important');
    expect(await page.evaluate("getComputedStyle(document.querySelector('.act code')).whiteSpace")).toBe('pre-wrap');
    expect(await page.locator('.said[data-role="question"] .plain').textContent()).toBe(`Run the tests\n\n${command}`);
  });

  test('names the tool that the agent wants to use', async () => {
    const execution = await atWork();
    await report(execution, permission('q', 'Read the documentation', { name: 'mcp__prod__drop\u202e_database' }));
    await open(execution.runId);
    await waits();
    expect(await page.locator('#ask').textContent()).toContain('mcp__prod__drop[U+202E]_database');
    expect(await page.locator('#ask-announcer').textContent()).toContain('mcp__prod__drop[U+202E]_database');
    await browser().picture('run-permission');
  });

  test('shows names of files, runs and commands so that they change no text beside them', async () => {
    const turned = (text: string) => `\u202e${text}`;
    const execution = await atWork('Lead', { mode: 'orchestrate', title: 'Lead' });
    const key = execution.runToken;
    const child = { prompt: 'Help', title: turned('Helper') };
    await service.request('POST', '/harness-support/child-runs', { key, body: child });
    const data = { title: 'report\u202efdp.exe', reference_type: 'file', url: 'https://example.com/a' };
    await service.request('POST', '/harness-support/report-artifact', {
      key,
      body: { artifact_type: 'EXTERNAL_REFERENCE', data },
    });
    await report(
      execution,
      { type: 'action', step_id: 's', ...shell, input: { command: turned('deteleted') } },
      { type: 'action_result', action_id: 'a', state: 'failed', exit_code: 1 },
    );
    await open(execution.runId);
    await page.getByText('failed, exit code 1').waitFor();
    await browser().picture('run-bidi');
    expect(await page.locator('#artifacts a').textContent()).toBe('reportfdp.exe');
    expect(await page.locator('.act code').textContent()).toBe('[U+202E]deteleted');
    await expect.poll(() => page.locator('#children a').textContent()).toBe('[U+202E]Helper');
  });
});
