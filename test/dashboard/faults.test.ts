/** Tests the dashboard with requests that are late, cut off or answered in another order, in a real browser. */
import type { Page, Route } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { newPerson, teamUidOf } from '../../packages/service/test/people.ts';
import { startTestService, type TestService } from '../../packages/service/test/service.ts';
import { noBrowser, useBrowser } from '../support/browser.ts';
import { asksToRun, signIn } from '../support/dashboard.ts';
import { startAgent } from '../support/full-run.ts';

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
  const quickly = { interval: 100 };
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
    await expect.poll(async () => [await slowly(), await page.getByRole('alert').count()].at(-1), quickly).toBe(1);
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
    const covered = await page.locator('.dock').evaluate(({ clientHeight }) => clientHeight);
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

  test('the list shows runs again after an outage, and changes that no event has told', async () => {
    const agent = await startAgent(service, { title: 'In the list' });
    await hold('/runs/events');
    const isList = ({ pathname }: URL) => pathname.endsWith('/agent/runs');
    await page.route(isList, (route) => route.abort());
    await open('/runs');
    const problem = page.getByText('The service does not answer.').first();
    await expect.poll(async () => [await slowly(), await problem.isVisible()].at(-1), quickly).toBe(true);
    await page.unroute(isList);
    const row = page.getByRole('row').filter({ hasText: 'In the list' });
    await expect.poll(async () => [await slowly(), await row.count()].at(-1), quickly).toBe(1);
    await agent.report(asksToRun('make all'));
    await expect.poll(async () => [await slowly(), await row.textContent()].at(-1), quickly).toContain('make all');
  });
});
