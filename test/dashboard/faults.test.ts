/** Tests the dashboard with requests that are late, cut off or answered in another order, in a real browser. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Page, Route } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { newPerson, teamUidOf } from '../../packages/service/test/people.ts';
import { startTestService, type TestService } from '../../packages/service/test/service.ts';
import { noBrowser, useBrowser } from '../support/browser.ts';
import { asksToRun, signIn } from '../support/dashboard.ts';
import { startAgent } from '../support/full-run.ts';

/** Functions for the page. */
const gapAtRight: (element: unknown) => number = new Function(
  'element',
  `const range = document.createRange();
   range.selectNodeContents(element);
   return element.getBoundingClientRect().right - range.getBoundingClientRect().right;`,
) as never;
const styleOf: (element: unknown, name: string) => string = new Function(
  'element',
  'name',
  'return getComputedStyle(element)[name];',
) as never;

describe.skipIf(noBrowser)(`the dashboard under faults${noBrowser ? ` (skipped: ${noBrowser})` : ''}`, () => {
  let service: TestService;
  let page: Page;
  const browser = useBrowser();

  beforeAll(async () => {
    service = await startTestService();
  });
  afterAll(() => service.close());
  beforeEach(async () => {
    ({ page } = browser());
    await signIn(page, service);
    await page.clock.install();
  });

  const open = async (path: string) => await page.goto(service.baseUrl + path);
  /** Holds all requests to paths with this end. The returned function lets them and all later ones pass. */
  const hold = async (end: string): Promise<() => Promise<void>> => {
    const isHeld = ({ pathname }: URL) => pathname.endsWith(end);
    const held: Route[] = [];
    let isOpen = false;
    await page.route(isHeld, (route) => (isOpen ? route.continue() : void held.push(route)));
    return async () => {
      isOpen = true;
      for (const route of held) await route.continue().catch(() => undefined);
    };
  };
  const slowly = async () => await page.clock.fastForward(20_000);
  /**
   * Moves the clock of the page again and again until `holds` returns true. The pauses grow, because on a busy machine, a request may take
   * longer than a short pause, and its time limit would pass in each of them.
   */
  const untilLater = async (holds: () => Promise<boolean>): Promise<void> => {
    for (let pauseMs = 100; pauseMs < 30_000; pauseMs *= 1.5) {
      await slowly();
      await delay(pauseMs);
      if (await holds()) return;
    }
    throw new Error(`never became true: ${holds}`);
  };
  const panel = () => page.getByRole('region', { name: 'The agent asks to run a command' });

  test('a run whose question is on the first page, but not in its record, shows the question', async () => {
    const agent = await startAgent(service, { title: 'Asks early' });
    const release = await hold('/messages');
    await open(`/runs/${agent.runId}`);
    await page.getByText('In progress').first().waitFor();
    await agent.report(asksToRun('make early'));
    await release();
    await panel().waitFor();
  });

  test('a run without a stream shows its question after a slow read', async () => {
    const agent = await startAgent(service, { title: 'Asks unheard' });
    await hold('/events');
    await open(`/runs/${agent.runId}`);
    await page.getByText('In progress').first().waitFor();
    await agent.report(asksToRun('make unheard'));
    await slowly();
    await panel().waitFor();
  });

  test('a refused start is shown next to the button, also if it was outside the window', async () => {
    await page.setViewportSize({ width: 1200, height: 560 });
    await page.route('**/api/v1/agent/runs', (route) =>
      route.request().method() === 'POST' ? route.abort() : route.continue(),
    );
    await open('/runs/new');
    await page.getByLabel('Prompt').fill('Say hi');
    await page.getByLabel('Prompt').press('Control+Enter');
    await untilLater(async () => (await page.getByRole('alert').count()) === 1);
    const [button, problem] = [page.getByRole('button', { name: /^Start run/ }), page.getByRole('alert')];
    await expect.poll(async () => ((await problem.boundingBox())?.y ?? 900) < 560).toBe(true);
    const [above, below] = [await button.boundingBox(), await problem.boundingBox()];
    expect((below?.y ?? 0) - (above?.y ?? 0) - (above?.height ?? 0)).toBeLessThan(40);
    await browser().picture('fault-refused-start');
  });

  test('at 200 % zoom, a question and the field for messages leave room for the conversation', async () => {
    const agent = await startAgent(service, { title: 'Asks much' });
    await agent.report(asksToRun('make all', 'q1', { content: 'line\n'.repeat(200) }));
    await page.setViewportSize({ width: 720, height: 450 });
    await open(`/runs/${agent.runId}`);
    await panel().waitFor();
    const covered = await page.locator('[data-part=dock]').evaluate(({ clientHeight }) => clientHeight);
    expect(covered).toBeLessThan(260);
    await browser().picture('fault-zoom');
  });

  test('typed text survives a missing file and the end of the session, and the next person of the browser reads none of it', async () => {
    const agent = await startAgent(service, { title: 'Long message' });
    let loads = 0;
    page.on('load', () => {
      loads += 1;
    });
    await open(`/runs/${agent.runId}`);
    const field = page.getByRole('textbox', { name: 'Message to the agent' });
    await field.fill('A message that took ten minutes.');
    await page.route('**/app/schedules-screen-*.js', (route) => route.fulfill({ status: 404, body: '' }));
    const link = page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'Schedules' });
    await link.hover();
    const again = page.getByRole('button', { name: 'Load the page again' });
    await again.waitFor();
    await browser().picture('fault-missing-file');
    expect([loads, await field.inputValue()]).toEqual([1, 'A message that took ten minutes.']);
    await link.click();
    await page.getByText('The page has a fault').waitFor();
    expect(loads).toBeLessThanOrEqual(2);
    await open(`/runs/${agent.runId}`);
    expect(await field.inputValue()).toBe('A message that took ten minutes.');
    // The session ends: the answer to the message has a button, and the text is still there after the next sign-in.
    await page.route('**/api/v1/**', (route) =>
      route.request().method() === 'GET' ? route.abort() : route.continue(),
    );
    await browser().context.clearCookies();
    await field.press('Control+Enter');
    const signInAgain = page.getByRole('link', { name: 'Sign in' });
    await signInAgain.waitFor();
    await browser().picture('fault-session-ended');
    await page.unroute('**/api/v1/**');
    await signInAgain.click();
    await page.getByLabel('API key', { exact: true }).fill(service.key);
    await page.getByRole('button', { name: 'Sign in', exact: true }).click();
    await expect.poll(() => field.inputValue()).toBe('A message that took ten minutes.');
    // Another person signs in to the same tab.
    const { key } = await newPerson(service, await teamUidOf(service), 'member');
    await signIn(page, service, key);
    await open(`/runs/${agent.runId}`);
    await page.getByRole('button', { name: 'A member' }).waitFor();
    expect(await field.inputValue()).toBe('');
    expect(await page.evaluate('JSON.stringify(sessionStorage)')).not.toContain('ten minutes');
  });

  test('a text from right to left is aligned to the right, and code in it runs from left to right', async () => {
    const agent = await startAgent(service, { title: 'שלום עולם' });
    const text = 'مرحبا، تم إصلاح `fix-1` في README.md.\n\n1. راجع `npm test` أولا';
    await agent.report({ type: 'text', step_id: 's', message_id: 'm', role: 'assistant', text });
    await open(`/runs/${agent.runId}`);
    const said = page.locator('[data-part=markdown]', { hasText: 'README.md' });
    await said.locator('li').waitFor();
    for (const place of [said.locator('p').first(), said.locator('li'), page.locator('#main h1')])
      expect(await place.evaluate(gapAtRight)).toBeLessThan(2);
    expect(await said.locator('code').first().evaluate(styleOf, 'direction')).toBe('ltr');
    const field = page.getByRole('textbox', { name: 'Message to the agent' });
    expect(await field.evaluate(styleOf, 'unicodeBidi')).toBe('plaintext');
    await browser().picture('fault-right-to-left');
  });

  test('the address of a link keeps its fragment over the sign-in', async () => {
    const run = await service.newRun({ title: 'Linked' });
    await browser().context.clearCookies();
    await open(`/runs/${run}?tab=files#part-2`);
    await page.getByLabel('API key', { exact: true }).fill(service.key);
    await page.getByRole('button', { name: 'Sign in', exact: true }).click();
    await page.getByRole('heading', { name: 'Linked' }).waitFor();
    expect(page.url()).toBe(`${service.baseUrl}/runs/${run}?tab=files#part-2`);
  });

  test('a failed run shows its reason, also if it fails while it is watched, and says it once, with the output of all setup steps', async () => {
    const agent = await startAgent(service, { title: 'Fails at last' });
    const step = { step_id: 'one', kind: 'setup_command', name: 'npm ci' };
    await agent.happen('setup_step_started', step);
    await agent.happen('setup_step_finished', { ...step, duration_ms: 1200, output_tail: 'added 12 packages' });
    const texts = Array.from({ length: 60 }, (_, index) => `Message ${index}.`);
    await agent.report(
      ...texts.map((text, index) => ({ type: 'text', step_id: 's', message_id: `m${index}`, role: 'assistant', text })),
    );
    const error = { code: 'agent_process_failed', message: 'The tests of billing fail' };
    await open(`/runs/${agent.runId}`);
    await page.getByText('Message 59.').waitFor();
    const scroll = page.locator('[data-part=scroll]');
    await expect.poll(() => scroll.evaluate(({ scrollTop }) => scrollTop)).toBeGreaterThan(0);
    await agent.send('/finish-task', { turn: 1, success: false, summary: error.message, error });
    await page.locator('[data-part=why]').waitFor();
    await expect.poll(() => scroll.evaluate(({ scrollTop }) => scrollTop)).toBe(0);
    await page.reload();
    const reason = page.locator('#main > div').getByText(error.message);
    await reason.first().waitFor();
    await page.getByText('Message 59.').waitFor({ state: 'attached' });
    await browser().picture('fault-failed');
    expect(await reason.filter({ visible: true }).count()).toBe(1);
    expect(await scroll.evaluate(({ scrollTop }) => scrollTop)).toBe(0);
    await page.locator('[data-part=why]').getByText('npm ci').click();
    await page.getByText('added 12 packages').filter({ visible: true }).waitFor();
    await browser().picture('fault-failed-setup');
    await page.setViewportSize({ width: 390, height: 844 });
    await page.reload();
    await page.getByText('Message 0.').waitFor();
    expect(await page.locator('#main').evaluate(({ scrollTop }) => scrollTop)).toBe(0);
  });

  test('the tab names the run, the badge counts a question at once, and a form offers only usable models', async () => {
    const agent = await startAgent(service, { title: 'Named in the tab' });
    await open(`/runs/${agent.runId}`);
    await page.getByRole('heading', { name: 'Named in the tab' }).waitFor();
    expect(await page.title()).toBe('Named in the tab · Runyard');
    await open('/runs/new');
    const body = await service.ok<{ models: { id: string; disable_reason?: string }[] }>('GET', '/agent/models');
    const usable = body.models.filter(({ disable_reason: reason }) => reason === undefined).map(({ id }) => id);
    expect(usable.length).toBeLessThan(body.models.length);
    await page.getByRole('button', { name: /^Show all models/ }).click();
    const offered = page.locator('[role=option]:not([aria-disabled])').filter({ hasNotText: /default|harness/ });
    await expect.poll(() => offered.count()).toBe(usable.length);
    await page.locator('[role=option][aria-disabled]', { hasText: 'no key' }).first().waitFor();
    await page.keyboard.press('Escape');
    const badge = page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: /^Inbox/ });
    const before = Number((await badge.textContent())?.replace(/\D/g, ''));
    await agent.report(asksToRun('make badge'));
    await expect.poll(() => badge.textContent(), { timeout: 8_000 }).toBe(`Inbox${before + 1}`);
  });

  test('the list shows runs again after an outage, and also changes without an event', async () => {
    const agent = await startAgent(service, { title: 'In the list' });
    await hold('/runs/events');
    const isList = ({ pathname }: URL) => pathname.endsWith('/agent/runs');
    await page.route(isList, (route) => route.abort());
    await open('/runs');
    const problem = page.getByText('The service does not answer.').first();
    await untilLater(() => problem.isVisible());
    await page.unroute(isList);
    const row = page.getByRole('row').filter({ hasText: 'In the list' });
    await untilLater(async () => (await row.count()) === 1);
    await agent.report(asksToRun('make all'));
    await untilLater(async () => (await row.textContent())?.includes('make all') === true);
  });
});
