/** Tests the usage screen of the dashboard in a real browser. */
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
