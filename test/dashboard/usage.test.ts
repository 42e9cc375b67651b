/** Tests the usage screen of the dashboard in a real browser. */
import { randomUUIDv7 } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { startTestService, type TestService } from '../../packages/service/test/service.ts';
import { noBrowser, useBrowser } from '../support/browser.ts';
import { signIn } from '../support/dashboard.ts';

describe.skipIf(noBrowser)(`the usage screen${noBrowser ? ` (skipped: ${noBrowser})` : ''}`, () => {
  let service: TestService;
  let page: Page;
  let complaints: string[];
  const browser = useBrowser();

  beforeAll(async () => {
    service = await startTestService();
    const { body } = await service.request<{ user: { uid: string } }>('GET', '/session');
    const models = [
      ['anthropic/claude-opus-5-5', 4, 0],
      ['=cmd|calc', 1, 0],
      ['local/qwen3-coder', 0, 3],
    ] as const;
    for (const [model, cost, unpriced] of models)
      await service.deps.db.query(
        `INSERT INTO usage_days (team_id, day, model_id, creator_kind, creator_uid, executor_kind, executor_uid, requests,
           input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, cost_usd, unpriced_requests)
         VALUES ($1, (now() AT TIME ZONE 'UTC')::date, $2, 'user', $3, 'user', $3, 10, 250, 50, 750, 0, $4, $5)`,
        [service.teamId, model, body.user.uid, cost, unpriced],
      );
    await service.deps.db.query(
      `INSERT INTO team_spend (team_id, month, spent_usd) VALUES ($1, date_trunc('month', now() AT TIME ZONE 'UTC'), 5)`,
      [service.teamId],
    );
    await service.request('PATCH', '/budget', { body: { monthly_limit_usd: 20 } });
  });
  afterAll(() => service.close());
  beforeEach(() => {
    ({ page, complaints } = browser());
  });

  test('shows the remaining budget and the cost by model and by creator, and gives the same numbers to screen readers and in the CSV file', async () => {
    await signIn(page, service);
    await page.goto(`${service.baseUrl}/usage`);
    await page.getByText('$5.00 of $20.00').waitFor();
    await page.getByRole('img', { name: '25 percent of the monthly limit' }).waitFor();
    await page.getByText('requests to local/qwen3-coder').waitFor();
    await page.getByRole('img', { name: /^Cost of each day .* with \$5\.00\. A table/ }).waitFor();
    const cells = page.getByRole('table', { name: 'Cost of each day by model' }).getByRole('row').last();
    expect(await cells.getByRole('cell').allTextContents()).toEqual(['$4.00', '$1.00']);
    const rows = page.getByRole('table', { name: 'Cost by model' }).getByRole('row');
    expect((await rows.allTextContents()).slice(1)).toEqual([
      'anthropic/claude-opus-5-5101.1 K75%$4.00',
      '=cmd|calc101.1 K75%$1.00',
      'local/qwen3-coder101.1 K75%not known',
    ]);
    const download = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Export CSV' }).click();
    const csv = await readFile(await (await download).path(), 'utf8');
    expect(csv.split('\r\n')[2]).toMatch(/^'=cmd\|calc,'=cmd\|calc,10,250,50,750,0,1,0$/);
    await browser().picture('usage');

    await page.getByRole('link', { name: 'By creator' }).click();
    await page.waitForURL(/by=creator/);
    await page.getByRole('cell', { name: 'Administrator person' }).waitFor();
    await page.getByRole('button', { name: '30 days' }).click();
    await page.waitForURL(/from=\d{4}-\d\d-\d\d/);
    expect(complaints).toEqual([]);
  });

  test('sorts the runs that were created in the days by cost or time, if there are at most 2,000', async () => {
    for (const [title, cost, minutes] of [
      ['Cheap <b>and</b> long', 0.5, 90],
      ['Expensive', 2, 3],
      ['Of an unknown price', null, 1],
    ] as const) {
      const { runId, executionId } = await service.startExecution({ title });
      await service.deps.db.query(
        `INSERT INTO model_requests VALUES ($1, $2, $3, 'm', 'p', 200, 10, 5, 0, 0, $4::double precision, $4::double precision, 0, 0, NULL, 12)`,
        [randomUUIDv7(), runId, executionId, cost === null ? null : cost / 2],
      );
      await service.deps.db.query(
        `UPDATE runs SET state = 'SUCCEEDED', started_at = now() - make_interval(mins => $2), ended_at = now() WHERE id = $1`,
        [runId, minutes],
      );
    }
    await service.newRun({ title: 'Without a request' });
    await signIn(page, service);
    await page.goto(`${service.baseUrl}/usage`);
    await page.getByRole('link', { name: 'By run' }).click();
    const titles = (name: string) => page.getByRole('table', { name }).locator('tbody a').allTextContents();
    const known = ['Expensive', 'Cheap <b>and</b> long'];
    await expect
      .poll(() => titles('Most expensive runs'))
      .toEqual([...known, 'Of an unknown price', 'Without a request']);
    await page.getByText('4 runs created in these days').waitFor();
    await browser().picture('usage-runs');
    await page.getByRole('button', { name: 'Longest' }).click();
    await expect.poll(async () => (await titles('Longest runs')).slice(0, 2)).toEqual(known.toReversed());
    const colour = (name: string) =>
      page.evaluate<string>(
        `getComputedStyle([...document.querySelectorAll('button')].find((each) => each.textContent === '${name}')).backgroundColor`,
      );
    await page.reload();
    await expect.poll(async () => (await titles('Longest runs'))[0]).toBe(known[1]);
    expect(await colour('Longest'), 'the chosen order is seen').not.toBe(await colour('Most expensive'));
    await page.setViewportSize({ width: 390, height: 844 });
    await page.reload();
    await page.getByRole('table', { name: 'Longest runs' }).waitFor();
    await browser().picture('usage-runs-390');
    await page.route('**/api/v1/agent/runs/counts?*', (route) =>
      route.fulfill({ json: { total: 20_000, is_exact: false, states: {}, spent_usd: 0 } }),
    );
    await page.reload();
    await page.getByText('More than 20,000 runs were created in these days').waitFor();
    expect(complaints).toEqual([]);
  });

  test('shows members only the cost of their own runs, in total and for each automation', async () => {
    const key = await service.newKey({ role: 'member' });
    const { body } = await service.request<{ user: { uid: string } }>('GET', '/session', { key });
    await service.deps.db.query(
      `INSERT INTO usage_days (team_id, day, model_id, creator_kind, creator_uid, executor_kind, executor_uid, automation_uid, cost_usd)
       SELECT $1, (now() AT TIME ZONE 'UTC')::date, 'm', 'user', $2, 'user', $2, uid, cost
       FROM (VALUES (NULL, 3), ('', 2), ('gone', 1)) u(uid, cost)`,
      [service.teamId, body.user.uid],
    );
    await signIn(page, service, key);
    await page.goto(`${service.baseUrl}/usage`);
    await page.getByText('Cost of your runs').waitFor();
    await page.getByText('$6.00').first().waitFor();
    await page.getByRole('link', { name: 'By automation' }).click();
    const rows = page.getByRole('table', { name: 'Cost by automation' }).getByRole('row');
    await rows.nth(3).waitFor();
    expect((await rows.allTextContents()).slice(1)).toEqual([
      'not known00–$3.00',
      'no automation00–$2.00',
      'gone00–$1.00',
    ]);
    expect(await page.getByRole('link', { name: 'By creator' }).count()).toBe(0);
    expect(await page.getByText('monthly limit').count()).toBe(0);
    await browser().picture('usage-own');
    expect(complaints).toEqual([]);
  });
});
