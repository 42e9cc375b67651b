/** Tests that the page of a run shows its result and its checks, and only as text. With SCREENSHOT_DIR, takes pictures. */
import path from 'node:path';
import type { RunItem } from '@runyard/contract/runs/runs';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { startTestService, type TestService } from '../../packages/service/test/service.ts';
import { noBrowser, useBrowser } from '../support/browser.ts';
import { signIn } from '../support/dashboard.ts';

const folder = process.env.SCREENSHOT_DIR;
const markup = '<img src=x onerror="document.title=1">';

describe.skipIf(noBrowser)(`results on the page of a run${noBrowser ? ` (skipped: ${noBrowser})` : ''}`, () => {
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
  });

  test('the page shows the fields of the result as text, and the last outcome of each check', async () => {
    const config = { output_schema: {}, checks: [{ name: 'tests', command: 'npm test' }] };
    const { runId, runToken: key } = await service.startExecution({ config });
    const at = { occurred_at: new Date().toISOString() };
    const check = { ...at, check_id: 'c', name: 'tests', attempt: 1 };
    const events = [
      { ...at, seq: 1, type: 'agent_started', harness: 'oz', model_id: 'runbook' },
      { ...at, seq: 2, type: 'turn_started', step_id: 's', prompt: 'Do it' },
      { ...check, seq: 3, type: 'check_started' },
      {
        ...check,
        seq: 4,
        type: 'check_finished',
        state: 'passed',
        duration_ms: 1200,
        exit_code: 0,
        output_tail: markup,
      },
    ];
    await service.report(key, events);
    const result = { severity: 'high', note: markup, files: ['src/tax.ts'], count: 3, empty: '' };
    await service.request('POST', '/harness-support/result', { key, body: { turn: 1, result } });
    const body = { turn: 1, success: true, summary: 'Done.', checks: [{ name: 'tests', passed: true }] };
    await service.request('POST', '/harness-support/finish-task', { key, body });
    await page.goto(`${service.baseUrl}/runs/${runId}`);
    const section = page.locator('[data-part=result]').filter({ visible: true });
    await section.waitFor();
    expect(await section.locator('dt:text-is("severity") + dd').textContent()).toBe('high');
    expect(await section.locator('dt:text-is("note") + dd').textContent()).toBe(markup);
    expect(await page.locator('img[src=x]').count()).toBe(0);
    expect(await page.locator('[data-part=checks]').filter({ visible: true }).textContent()).toContain('passed, 1.2 s');
    for (const [scheme, width] of folder
      ? ([
          ['light', 1280],
          ['dark', 1280],
          ['light', 390],
          ['dark', 390],
        ] as const)
      : []) {
      await page.emulateMedia({ colorScheme: scheme });
      await page.setViewportSize({ width, height: 900 });
      if (width === 390) await page.getByTitle('All facts about this run').click();
      await page.screenshot({ path: path.join(folder ?? '', `results-${scheme}-${width}.png`), fullPage: true });
      if (width === 390) await page.getByTitle('All facts about this run').click();
    }
  });

  test('a person compares a run, repeats it after the question about the cost, and reruns what has failed below a run', async () => {
    const finished = async (runId: string, success: boolean) => {
      const { runToken: key } = await service.claimRun(runId);
      const started = {
        seq: 1,
        occurred_at: new Date().toISOString(),
        type: 'agent_started',
        harness: 'oz',
        model_id: 'm',
      };
      await service.report(key, [started]);
      const body = { success, summary: success ? markup : 'It fails.' };
      await service.request('POST', '/harness-support/finish-task', { key, body });
    };
    const runId = await service.newRun({ title: 'The original' });
    const child = await service.newRun({ title: 'A part', parent_run_id: runId });
    await finished(child, false);
    await finished(runId, true);
    await page.goto(`${service.baseUrl}/runs/${runId}`);
    await page.getByRole('button', { name: 'Rerun failed' }).click();
    await expect.poll(() => page.getByRole('button', { name: 'Rerun failed' }).count()).toBe(0);
    expect(
      await service.deps.db.query('SELECT rerun_of FROM runs WHERE parent_run_id = $1 AND id <> $2', [runId, child]),
    ).toEqual([{ rerun_of: child }]);

    await page.getByRole('button', { name: 'More' }).first().click();
    await page.getByRole('menuitem', { name: 'Compare…' }).click();
    const table = page.getByRole('table', { name: 'Runs side by side' });
    await table.getByText('SUCCEEDED').waitFor();
    await table.getByText(/^agent began after \d.*, ended after \d/).waitFor();
    expect(await page.locator('img[src=x]').count()).toBe(0);
    await page.getByRole('button', { name: 'Repeat with…' }).click();
    await page.getByLabel('runbook').check();
    await page.getByLabel('claude', { exact: true }).check();
    await page.getByLabel('With these skills').fill('acme/skills:one  acme/skills:two');
    await page.getByLabel('How often').fill('2');
    if (folder) await page.screenshot({ path: path.join(folder, 'repeat.png') });
    await page.getByRole('button', { name: 'Next: the cost' }).click();
    await page.getByRole('alertdialog', { name: 'Start 4 runs?' }).waitFor();
    await page.getByRole('button', { name: 'Start nothing' }).click();
    await page.getByRole('button', { name: 'Repeat with…' }).click();
    await page.getByLabel('runbook').check();
    await page.getByLabel('oz', { exact: true }).check();
    await page.getByLabel('How often').fill('2');
    await page.getByRole('button', { name: 'Next: the cost' }).click();
    const created = () => service.deps.db.query('SELECT id FROM runs WHERE rerun_of = $1', [runId]);
    await page.getByText('At the cost of the originals').waitFor();
    expect(await created()).toEqual([]);
    await page.getByRole('button', { name: 'Start the runs' }).click();
    await expect.poll(() => table.getByText('repeated').count()).toBe(2);
    const [repeated, ...others] = await created();
    expect(others).toHaveLength(1);
    const { body } = await service.request<RunItem>('GET', `/agent/runs/${repeated?.id}`);
    expect(body.agent_config).toMatchObject({ harness: { type: 'oz' }, model_id: 'runbook' });
    if (folder) await page.screenshot({ path: path.join(folder, 'compare.png'), fullPage: true });
    await page.getByLabel('Remove The original').first().click();
    await expect.poll(() => table.getByRole('columnheader').count()).toBe(3);

    // The address of the page is a link, and a rerun is compared with its original.
    const rerunId = (await service.request<{ run_id: string }>('POST', `/agent/runs/${runId}/rerun`)).body.run_id;
    await page.goto(`${service.baseUrl}/runs/${rerunId}`);
    await page.getByRole('button', { name: 'More' }).first().click();
    await page.getByRole('menuitem', { name: 'Compare…' }).click();
    await expect.poll(() => table.getByRole('columnheader').count()).toBe(3);
    await page.reload();
    await expect.poll(() => table.getByRole('columnheader').count()).toBe(3);
    await page.goto(`${service.baseUrl}/runs`);
    for (const index of [1, 2]) await page.getByRole('checkbox').nth(index).check();
    await page.getByRole('toolbar').getByRole('link', { name: 'Compare' }).click();
    await expect.poll(() => table.getByRole('columnheader').count()).toBe(3);
  });
});
