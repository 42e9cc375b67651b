/** A tab of the dashboard that shows a run while its agent sends 100,000 events. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { heapMbOf, readPace, watchPages } from '../../bench/page-times.ts';
import { startTestService, type TestService } from '../../packages/service/test/service.ts';
import { noBrowser, useBrowser } from '../support/browser.ts';
import { signIn } from '../support/dashboard.ts';

describe.skipIf(noBrowser)(`a tab in a long stream${noBrowser ? ` (skipped: ${noBrowser})` : ''}`, () => {
  let service: TestService;
  const browser = useBrowser();

  beforeAll(async () => {
    service = await startTestService();
  });
  afterAll(() => service.close());

  test('paints the effect of a key, answers, and keeps its memory while an agent sends 100,000 events', async () => {
    const { context, complaints } = browser();
    const total = 100_000;
    const batch = 250;
    await watchPages(context);
    const page = await context.newPage();
    page.on('pageerror', ({ message }) => complaints.push(message));
    await signIn(page, service);
    const { runId, runToken: key } = await service.startExecution({ title: 'A stream' });
    let sent = 0;
    const send = async (events: readonly object[]) => {
      const occurred_at = new Date().toISOString();
      const body = { events: events.map((event, index) => ({ seq: sent + index + 1, occurred_at, ...event })) };
      sent += events.length;
      await service.ok('POST', '/harness-support/events', { key, body });
    };
    await send([
      { type: 'agent_started', harness: 'oz', model_id: 'runbook' },
      { type: 'turn_started', step_id: 's', prompt: 'Work' },
    ]);
    await page.goto(`${service.baseUrl}/runs/${runId}`);
    await page.locator('[data-state=INPROGRESS][data-large]').waitFor();
    const cdp = await context.newCDPSession(page);
    await readPace(page);
    const stream = (async () => {
      while (sent < total)
        await send(
          Array.from({ length: Math.min(batch, total - sent) }, (_, index) => ({
            type: 'text',
            step_id: 's',
            message_id: `m${Math.floor((sent + index) / 12)}`,
            role: 'assistant',
            text: ` \u202e**piece** ${sent + index} <b>`,
          })),
        );
      await send([{ type: 'text', step_id: 's', message_id: 'end', role: 'assistant', text: 'The stream has ended' }]);
    })();
    let presses = 0;
    const keys = page.getByRole('dialog', { name: 'Keys' });
    while (sent < total) {
      await page.keyboard.press('?');
      await keys.waitFor();
      await page.keyboard.press('Escape');
      await keys.waitFor({ state: 'detached' });
      presses += 1;
    }
    await stream;
    await page.getByText('The stream has ended').waitFor();
    const pace = await readPace(page);
    expect(presses).toBeGreaterThan(5);
    expect(pace.keys.length).toBeGreaterThanOrEqual(2 * presses);
    expect(Math.max(...pace.keys), 'the slowest key, ms').toBeLessThan(3_000);
    expect(await heapMbOf(cdp), 'heap, MB').toBeLessThan(100);
    expect(await page.locator('*').count(), 'elements').toBeLessThan(5_000);
    expect(complaints).toEqual([]);
  }, 600_000);
});
