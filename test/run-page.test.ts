/** The page of a run in a real browser, over a real port. */
import path from 'node:path';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { Assignment } from '../packages/service/src/runs/executions/queue/assign.ts';
import { startTestService, type TestService } from '../packages/service/test/service.ts';
import { noBrowser, useBrowser } from './support/browser.ts';

describe.skipIf(noBrowser)(`the page of a run${noBrowser ? ` (skipped: ${noBrowser})` : ''}`, () => {
  let service: TestService;
  let page: Page;
  let complaints: string[];
  const browser = useBrowser();
  const picture = (name: string) => browser().picture(name);

  beforeAll(async () => {
    service = await startTestService();
  });
  afterAll(() => service.close());
  beforeEach(() => {
    ({ page, complaints } = browser());
  });

  const sent = new Map<string, number>();
  const report = async ({ runToken }: Assignment, ...events: Record<string, unknown>[]) => {
    const first = (sent.get(runToken) ?? 0) + 1;
    sent.set(runToken, first - 1 + events.length);
    const body = {
      events: events.map((event, index) => ({ seq: first + index, occurred_at: new Date().toISOString(), ...event })),
    };
    const answer = await service.request('POST', '/harness-support/events', { key: runToken, body });
    expect(answer.status, answer.text).toBe(200);
  };

  const open = async (runId: string, key = service.key) => {
    await page.goto(`${service.baseUrl}/runs/${runId}`);
    await page.getByLabel('API key').fill(key);
    await page.getByRole('button', { name: 'Open', exact: true }).click();
  };
  const begin = [
    { type: 'agent_started', harness: 'oz', model_id: 'runbook' },
    { type: 'turn_started', step_id: 's', prompt: 'Say hello, then list <b>everything</b>' },
  ];

  test('asks for a key, follows the run live and shows everything as text', async () => {
    const execution = await service.startExecution({ title: 'Greeting & listing' });
    await report(execution, ...begin);
    await open(execution.runId);
    await page.getByRole('heading', { name: 'Greeting & listing' }).waitFor();
    await page.getByText('Say hello, then list <b>everything</b>').waitFor();
    expect(await page.locator('#state').textContent()).toBe('INPROGRESS');

    const markup = '<img src=x onerror="document.title=`hacked`"><script>document.title="hacked"</script>';
    await report(
      execution,
      { type: 'text', step_id: 's', message_id: 'm', role: 'assistant', text: `Working: ${markup}` },
      {
        type: 'action',
        step_id: 's',
        action_id: 'a',
        category: 'command',
        name: 'shell',
        input: { command: 'echo hello; ls' },
      },
      { type: 'action_output', action_id: 'a', text: 'hello\n' },
    );
    await page.getByText(`Working: ${markup}`).waitFor();
    await page.getByText('hello', { exact: true }).waitFor();
    expect(await page.locator('.act').getAttribute('data-state')).toBe('running');
    expect(await page.getByLabel('API key').isVisible()).toBe(false);
    await picture('run-live');

    await report(
      execution,
      { type: 'action_output', action_id: 'a', text: 'README.md\n' },
      { type: 'action_result', action_id: 'a', state: 'completed', exit_code: 0 },
      { type: 'text', step_id: 's', message_id: 'n', role: 'assistant', text: 'Hello, and done.' },
    );
    const uploaded = await service.request<{ upload_url: string }>('POST', '/harness-support/report-artifact', {
      key: execution.runToken,
      body: { artifact_type: 'FILE', data: { filename: 'report.txt', mime_type: 'text/plain' } },
    });
    await service.request('PUT', uploaded.body.upload_url, { key: null, raw: 'the report' });
    await service.request('POST', '/harness-support/report-artifact', {
      key: execution.runToken,
      body: { artifact_type: 'PLAN', data: { title: 'The plan', content: '# Steps' } },
    });
    await service.request('POST', '/harness-support/finish-task', {
      key: execution.runToken,
      body: { success: true, summary: 'Hello, and done.' },
    });
    await page.locator('#state[data-state=SUCCEEDED]').waitFor();
    await page.getByText('completed, exit code 0').waitFor();
    expect(await page.locator('.act pre').textContent()).toBe('hello\nREADME.md\n');
    await page.getByText('run succeeded').waitFor();

    const download = page.waitForEvent('download');
    await page.getByRole('button', { name: 'report.txt' }).click();
    expect((await download).suggestedFilename()).toBe('report.txt');
    await page.getByText('The plan').click();
    await page.getByText('# Steps').waitFor();
    await picture('run-ended');
    await page.reload();
    await page.getByText('completed, exit code 0').waitFor();
    expect(await page.locator('.act pre').textContent()).toBe('hello\nREADME.md\n');
    expect(await page.title()).toBe('Greeting & listing · Runyard');
    expect(await page.locator('img').count()).toBe(0);
    expect(page.url()).not.toContain(service.key);
    expect(complaints).toEqual([]);
  });

  test('shows an action once, with its last report', async () => {
    const execution = await service.startExecution();
    const action = { type: 'action', step_id: 's', action_id: 'a', category: 'command' };
    await report(execution, ...begin, { ...action, name: 'tool', input: { title: 'Terminal' } });
    await open(execution.runId);
    await page.locator('.act code', { hasText: 'Terminal' }).waitFor();
    await report(execution, { ...action, name: 'shell', input: { command: 'ls -la' } });
    await page.locator('.act code', { hasText: 'ls -la' }).waitFor();
    expect(await page.locator('.act strong').allTextContents()).toEqual(['shell']);
    expect(complaints).toEqual([]);
  });

  test('reports a wrong key and asks again, and forgets a key on request', async () => {
    const runId = await service.newRun({ title: 'Mine' });
    await open(runId, 'ryk_wrong');
    await page.getByText('This key is not valid.').waitFor();
    await picture('run-key');
    await page.getByLabel('API key').fill(service.otherKey);
    await page.getByRole('button', { name: 'Open', exact: true }).click();
    await page.getByText('There is no run with this id, or the key of this tab belongs to another team.').waitFor();
    await picture('run-unknown');
    await page.getByRole('button', { name: 'Use another key' }).click();
    await page.getByLabel('API key').fill(service.key);
    await page.getByRole('button', { name: 'Open', exact: true }).click();
    await page.getByRole('heading', { name: 'Mine' }).waitFor();
    await page.reload();
    await page.getByRole('heading', { name: 'Mine' }).waitFor();
    await page.getByRole('button', { name: 'Forget key' }).click();
    await page.getByLabel('API key').waitFor();
    expect(await page.evaluate('JSON.stringify({ ...sessionStorage, ...localStorage }) + document.cookie')).toBe('{}');
  });

  const look = { type: 'turn_started', step_id: 's', prompt: 'Look.' };
  const found = { type: 'text', step_id: 's', message_id: 'm', role: 'assistant', text: 'A typing error.' };
  const failSetup = async ({ runToken }: Assignment) => {
    const error = { code: 'environment_setup_failed', message: 'npm ci failed' };
    const body = { turn: 1, success: false, summary: 'x', error };
    await service.request('POST', '/harness-support/finish-task', { key: runToken, body });
  };
  const talk = (runId: string) =>
    service.request('POST', `/agent/runs/${runId}/followups`, { body: { message: 'Look.' } });

  test('shows messages and questions from the sandbox of a failed setup without a reload', async () => {
    const execution = await service.startExecution({ title: 'Broken' });
    await failSetup(execution);
    await open(execution.runId);
    await page.locator('#state[data-state=FAILED]').waitFor();
    await talk(execution.runId);
    await report(execution, look, found);
    await page.getByText('A typing error.').waitFor();
    const request = { request_id: 'q1', kind: 'question', title: 'Shall I mend it?' };
    await report(execution, { type: 'blocked', step_id: 's', request });
    await page.getByText('npm ci failed\nThe agent asks: Shall I mend it?').waitFor();
    expect(await page.locator('#state').textContent()).toBe('FAILED');
    await picture('run-setup-window');
    expect(complaints).toEqual([]);
  });

  test('misses no message between the end of the stream and the next read of the run', async () => {
    const execution = await service.startExecution({ title: 'Broken' });
    await failSetup(execution);
    let looks = 0;
    await page.route(`**/api/v1/agent/runs/${execution.runId}`, async (route) => {
      looks += 1;
      // Two looks are before the stream, the third is behind its end.
      if (looks === 3) {
        await talk(execution.runId);
        await report(execution, look, found);
      }
      await route.continue();
    });
    await open(execution.runId);
    await page.getByText('A typing error.').waitFor();
    expect(complaints).toEqual([]);
  });

  test('reads everything again from time to time when a proxy holds back the stream', async () => {
    const execution = await service.startExecution({ title: 'Polled' });
    await report(execution, ...begin);
    await page.route('**/events', (route) => route.abort());
    await open(execution.runId);
    await page.getByText('updated every few seconds').waitFor();
    await page.getByText('Say hello, then list').waitFor();
    await report(execution, { type: 'text', step_id: 's', message_id: 'm', role: 'assistant', text: 'Some words.' });
    await page.getByText('Some words.').waitFor();
    await service.request('POST', `/agent/runs/${execution.runId}/cancel`);
    await page.locator('#state[data-state=CANCELLED]').waitFor();
  });

  test('is readable on a narrow screen in dark mode, with the reference', async () => {
    await page.emulateMedia({ colorScheme: 'dark' });
    await page.setViewportSize({ width: 400, height: 800 });
    await open(await service.newRun({ title: 'A run with a very long title that does not fit into one line at all' }));
    await page.getByRole('heading', { name: 'A run with' }).waitFor();
    await page.getByText('Do it').waitFor();
    await picture('run-narrow-dark');
    const isWider = 'document.documentElement.scrollWidth > document.documentElement.clientWidth';
    expect(await page.evaluate(isWider)).toBe(false);
    await page.goto(`${service.baseUrl}/docs`);
    await page.getByRole('heading', { name: 'API reference' }).waitFor();
    await picture('docs-narrow-dark');
    expect(await page.evaluate(isWider)).toBe(false);
    expect(complaints).toEqual([]);
  });

  test('is readable in light mode, with the error pages and the reference', async () => {
    await page.goto(`${service.baseUrl}/docs`);
    await page.getByRole('link', { name: 'Create a run', exact: true }).click();
    await page.screenshot({ path: path.join(process.env.SCREENSHOT_DIR ?? browser().folder, 'docs.png') });
    await page.locator('#schema-RunItem').scrollIntoViewIfNeeded();
    await page.screenshot({ path: path.join(process.env.SCREENSHOT_DIR ?? browser().folder, 'docs-schema.png') });
    await page.goto(`${service.baseUrl}/errors/conflict`);
    await page.getByRole('heading', { name: 'Conflict' }).waitFor();
    await picture('error');
    expect(complaints).toEqual([]);
  });
});
