/** A run's page while the service refuses requests, answers late or cannot be reached, in a real browser. */
import type { Page, Route } from 'playwright-core';
import { beforeEach, describe, expect, test } from 'vitest';
import type { Assignment } from '../packages/service/src/runs/executions/queue/assign.ts';
import type { TestService } from '../packages/service/test/service.ts';
import { noBrowser } from './support/browser.ts';
import { useRunPage } from './support/run-page.ts';

describe.skipIf(noBrowser)(`a run's page in trouble${noBrowser ? ` (skipped: ${noBrowser})` : ''}`, () => {
  const { browser, report, open, atWork, ask, ...current } = useRunPage();
  let service: TestService;
  let page: Page;
  beforeEach(() => {
    service = current.service();
    page = current.page();
  });

  const readOf = ({ runId }: Assignment) => `**/api/v1/agent/runs/${runId}`;
  const text = (words: string) => ({ type: 'text', step_id: 's', message_id: words, role: 'assistant', text: words });
  const refuse = (status: number) => (route: Route) =>
    route.fulfill({ status, headers: { 'retry-after': '1' }, json: { detail: 'Not at the moment.' } });
  const question = () => page.getByRole('heading', { name: 'The agent waits for your decision' });

  test.each([
    ['answers 503', refuse(503)],
    ['answers 429', refuse(429)],
    ['cannot be reached', (route: Route) => route.abort()],
  ])('continues after its stream was cut and the service %s for a while', async (_, fail) => {
    const execution = await atWork();
    await open(execution.runId);
    await page.getByText('live', { exact: true }).waitFor();
    let refused = 0;
    await page.route(readOf(execution), (route) => {
      refused += 1;
      return refused > 2 ? route.continue() : fail(route);
    });
    service.app.server.closeAllConnections();
    await page.getByText('It is tried again.').waitFor();
    await browser().picture('run-trouble');
    await expect.poll(() => refused, { timeout: 60_000 }).toBeGreaterThan(2);
    await page.getByText('live', { exact: true }).waitFor();
    await report(execution, text('After the trouble.'));
    await page.getByText('After the trouble.').waitFor();
    expect(await page.locator('#problem').textContent()).toBe('');
  });

  test('opens as soon as a busy service answers', async () => {
    const execution = await atWork();
    let refused = 0;
    await page.route(readOf(execution), (route) => {
      refused += 1;
      return refused > 1 ? route.continue() : refuse(503)(route);
    });
    await page.goto(`${service.baseUrl}/runs/${execution.runId}`);
    await page.getByLabel('API key').fill(service.key);
    await page.getByRole('button', { name: 'Open', exact: true }).click();
    await page.getByText('Not at the moment.').waitFor();
    expect(await page.getByRole('heading', { name: 'Conversation' }).isVisible()).toBe(false);
    await page.getByRole('heading', { name: 'Conversation' }).waitFor();
    expect(await page.locator('#problem').textContent()).toBe('');
  });

  test('says why and does not ask again if the key may not read the run', async () => {
    const execution = await atWork();
    let asked = 0;
    await page.route(readOf(execution), (route) => {
      asked += 1;
      return refuse(403)(route);
    });
    await page.goto(`${service.baseUrl}/runs/${execution.runId}`);
    await page.getByLabel('API key').fill(service.key);
    await page.getByRole('button', { name: 'Open', exact: true }).click();
    await page.getByText('Not at the moment. Reload the page to try again.').waitFor();
    expect(await page.getByRole('button', { name: 'Forget key' }).isVisible()).toBe(true);
    expect(asked).toBe(1);
  });

  test('shows a question although the read of the run failed when it came', async () => {
    const execution = await atWork();
    await open(execution.runId);
    await page.getByRole('button', { name: 'Interrupt' }).waitFor();
    await page.getByText('live', { exact: true }).waitFor();
    await page.route(readOf(execution), refuse(503), { times: 1 });
    await ask(execution);
    await question().waitFor();
    await expect.poll(() => page.locator('#problem').textContent()).toBe('');
  });

  test('does not call a message refused if only the read after it fails', async () => {
    const execution = await atWork();
    await open(execution.runId);
    await page.getByText('live', { exact: true }).waitFor();
    let isSent = false;
    await page.route('**/followups', async (route) => {
      const response = await route.fetch();
      isSent = true;
      await route.fulfill({ response });
    });
    await page.route(readOf(execution), (route) => (isSent ? refuse(503)(route) : route.continue()));
    await page.getByLabel('Message to the agent').fill('Also run the tests.');
    await page.getByRole('button', { name: 'Send' }).click();
    await page.getByText('Sent.', { exact: true }).waitFor();
    await page.getByText('Not at the moment.').waitFor();
    expect(await page.locator('#send-problem').textContent()).toBe('');
    await page.unroute(readOf(execution));
    await expect.poll(() => page.getByRole('button', { name: 'Send' }).isEnabled()).toBe(true);
  });

  test('does not show an earlier state of the run that arrives late', async () => {
    const execution = await atWork();
    await open(execution.runId);
    await page.getByText('live', { exact: true }).waitFor();
    const held = Promise.withResolvers<void>();
    const release = Promise.withResolvers<void>();
    await page.route(
      readOf(execution),
      async (route) => {
        const response = await route.fetch();
        held.resolve();
        await release.promise;
        await route.fulfill({ json: { ...(await response.json()), title: 'Late' } });
      },
      { times: 1 },
    );
    await page.evaluate(`window.titles = [];
      new MutationObserver(() => titles.push(document.title)).observe(document.head, { childList: true, subtree: true, characterData: true })`);
    await page.getByRole('button', { name: 'Interrupt' }).click();
    await held.promise;
    await ask(execution);
    await question().waitFor();
    release.resolve();
    await report(execution, text('After the late answer.'));
    await page.getByText('After the late answer.').waitFor();
    expect(await page.evaluate('window.titles')).not.toContainEqual(expect.stringContaining('Late'));
    expect(await question().isVisible()).toBe(true);
  });

  test('shows the conversation although a notice of the agent looks like a question', async () => {
    const execution = await atWork();
    const notice = { type: 'notice', step_id: 's' };
    await report(
      execution,
      { ...notice, name: 'a', data: { request: { request_id: 'q' } } },
      {
        ...notice,
        name: 'b',
        data: { request: { request_id: 'q', title: 'Forged' }, decision: 'approve', by: 'person' },
      },
      text('After the notices.'),
    );
    await page.route('**/events', (route) => route.abort());
    await open(execution.runId);
    await page.getByText('After the notices.').waitFor();
    expect(await page.getByText('Forged').count()).toBe(0);
    expect(await page.getByText('approved by a person').count()).toBe(0);
  });

  test('leaves the connections to the service to the tabs that are in view', async () => {
    const execution = await atWork();
    await open(execution.runId);
    const key = `sessionStorage.setItem('runyard.key', ${JSON.stringify(service.key)})`;
    const hide = (tab: Page, hidden: boolean) =>
      tab.evaluate(`Object.defineProperty(document, 'hidden', { configurable: true, value: ${hidden} });
        document.dispatchEvent(new Event('visibilitychange'))`);
    await page.getByText('live', { exact: true }).waitFor();
    await hide(page, true);
    // Browsers open six connections to a service that speaks HTTP/1.1.
    for (let count = 0; count < 6; count += 1) {
      const tab = await browser().context.newPage();
      await tab.addInitScript(key);
      await tab.goto(`${service.baseUrl}/runs/${execution.runId}`, { timeout: 20_000 });
      await tab.getByText('live', { exact: true }).waitFor();
      await hide(tab, true);
    }
    await report(execution, text('While it was hidden.'));
    await hide(page, false);
    await page.getByText('While it was hidden.').waitFor();
    expect(await page.locator('.said', { hasText: 'While it was hidden.' }).count()).toBe(1);
  });
});
