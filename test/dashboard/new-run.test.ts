/** Tests the form for a new run in a real browser: files, skill, MCP servers, the picker of models, and the last choices of a person. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Environment } from '@runyard/contract/environments/environments';
import type { RunItem } from '@runyard/contract/runs/runs';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { startTestService, type TestService } from '../../packages/service/test/service.ts';
import { noBrowser, useBrowser } from '../support/browser.ts';
import { signIn, tooWide } from '../support/dashboard.ts';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
/** Script for the page. Returns the faults that axe finds. */
const findFaults =
  "axe.run().then(({ violations }) => violations.map(({ id, nodes }) => id + ': ' + nodes.slice(0, 2).map(({ html }) => html.slice(0, 160)).join(' | ')))";
/** Script for the page. Pastes an image and a text file into the prompt. */
const pasteFiles = `(() => {
  const data = new DataTransfer();
  data.items.add(new File([new Uint8Array([137, 80, 78, 71])], 'screen.png', { type: 'image/png' }));
  data.items.add(new File(['a,b'], 'table.csv', { type: 'text/csv' }));
  document.querySelector('textarea').dispatchEvent(new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true }));
})()`;

describe.skipIf(noBrowser)(`the form for a new run${noBrowser ? ` (skipped: ${noBrowser})` : ''}`, () => {
  let service: TestService;
  let environmentUid: string;
  let page: Page;
  const browser = useBrowser();

  beforeAll(async () => {
    service = await startTestService({ env: { RUNYARD_ALLOW_PRIVATE_NETWORKS: '127.0.0.0/8' } });
    const body = { config: { name: 'Web <b>app</b>' } };
    environmentUid = (await service.request<{ uid: string }>('POST', '/agent/environments', { body })).body.uid;
    await service.request('POST', '/agent/mcp-servers', { body: { name: 'docs', command: 'docs-server' } });
  });
  afterAll(() => service.close());
  beforeEach(async () => {
    ({ page } = browser());
    await signIn(page, service);
  });
  const open = async () => {
    await page.goto(`${service.baseUrl}/runs/new`);
    await page.getByLabel('Prompt').waitFor();
  };
  const picker = () => page.getByRole('combobox', { name: 'Model' });
  const started = async (): Promise<RunItem> => {
    await page.getByRole('button', { name: /^Start run/ }).click();
    await page.waitForURL(/\/runs\/[\da-f-]{36}$/);
    const id = new URL(page.url()).pathname.split('/')[2];
    return (await service.request<RunItem>('GET', `/agent/runs/${id}`)).body;
  };

  test('a run has pasted and attached files, MCP servers and the chosen model, and its choices are the defaults of the next run', async () => {
    await open();
    await page.getByLabel('Prompt').fill('Read the table');
    await page.evaluate(pasteFiles);
    await page.locator('input[type=file]').setInputFiles({
      name: 'notes.md',
      mimeType: 'text/markdown',
      buffer: Buffer.from('# Notes'),
    });
    await page.getByRole('button', { name: 'Remove notes.md' }).waitFor();
    await page.getByRole('button', { name: 'Remove table.csv' }).click();
    await picker().fill('runb');
    await page.getByRole('option', { name: 'Runbook', exact: true }).click();
    await page.getByLabel('Environment', { exact: true }).selectOption(environmentUid);
    await page.getByText(/^More: approvals/).click();
    await page.getByRole('checkbox', { name: 'docs' }).check();
    await page.getByLabel('Approvals').selectOption('ask');
    await browser().picture('new-run-filled');
    const run = await started();
    expect(run.agent_config).toMatchObject({
      model_id: 'runbook',
      environment_id: environmentUid,
      approval_policy: 'ask',
      mcp_servers: { docs: { warp_id: expect.any(String) } },
    });
    const files = await service.deps.db.query<{ name: string }>(
      'SELECT file_name AS name FROM attachments WHERE run_id = $1 ORDER BY file_name',
      [run.run_id],
    );
    expect(files.map(({ name }) => name)).toEqual(['notes.md', 'screen.png']);

    await open();
    await expect.poll(() => picker().inputValue()).toBe('Runbook');
    expect(await page.getByLabel('Environment', { exact: true }).inputValue()).toBe(environmentUid);
    expect(await page.getByLabel('Approvals').inputValue()).toBe('ask');
    expect(await page.getByLabel('Prompt').inputValue()).toBe('');
    // An environment that was deleted is not a default, and another person has other defaults.
    await service.request('DELETE', `/agent/environments/${environmentUid}`);
    await open();
    await expect.poll(() => page.getByLabel('Environment', { exact: true }).inputValue()).toBe('');
    await signIn(page, service, await service.newKey({ role: 'member' }));
    await open();
    await expect.poll(() => picker().inputValue()).toMatch(/^The default/);
    expect(browser().complaints).toEqual([]);
  });

  test('the picker finds models and harnesses, shows prices, and does not offer models without a key', async () => {
    await open();
    await picker().fill('claude');
    const harness = page.getByRole('option', { name: /^claude harness on the worker/ });
    await harness.waitFor();
    const off = page.locator('[role=option][aria-disabled]', { hasText: 'no key' }).first();
    await off.waitFor();
    await browser().picture('new-run-picker');
    await harness.click();
    await page.getByText(/^More: approvals/).click();
    expect(await page.getByLabel('Harness').inputValue()).toBe('claude');
    await page.getByText('"harness":{"type":"claude"}').waitFor();
    await page.getByLabel('Skill').fill('acme/web:fix');
    await page.getByText('"skill":"acme/web:fix"').waitFor();
  });

  test('a repository that is typed as an address creates an environment once, and the run uses it', async () => {
    const environments = async () =>
      (await service.request<{ environments: Environment[] }>('GET', '/agent/environments')).body.environments;
    const field = () => page.getByLabel('Repository', { exact: true });
    const create = () => page.getByRole('button', { name: 'Create environment acme-site@next' });
    const before = (await environments()).length;
    await open();
    await page.getByLabel('Prompt').fill('Do it');
    for (const [text, fault] of [
      ['<img src=x onerror=alert(1)>/site', 'must be a repository'],
      ['file:///etc/passwd', 'must be a repository'],
      ['https://ada:secret@127.0.0.1:9/acme/site', 'must have no user name or password'],
      ['http://169.254.169.254/acme/site', 'must be on 127.0.0.1:9'],
    ] as const) {
      await field().fill(text);
      await page.getByText(fault).waitFor();
      await page.getByRole('button', { name: /^Start run/ }).click();
      expect(await page.getByRole('button', { name: /^Create environment/ }).count()).toBe(0);
      // The service refuses the same address.
      const config = { name: 'refused', github_repos: [{ url: text }] };
      const answer = await service.request('POST', '/agent/environments', { body: { config } });
      if (!text.includes('secret')) expect(answer.status, text).toBe(400);
      else await service.request('DELETE', `/agent/environments/${(answer.body as { uid: string }).uid}`);
    }
    await browser().picture('new-run-repository-fault');
    await field().fill('https://127.0.0.1:9/acme/site/tree/next');
    await create().waitFor();
    await page.getByRole('button', { name: /^Start run/ }).click();
    expect(new URL(page.url()).pathname, 'the run waits for its environment').toBe('/runs/new');
    await browser().picture('new-run-repository');
    await create().click();
    await page.getByText('The run uses the environment acme-site@next.').waitFor();
    await browser().picture('new-run-repository-chosen');
    const made = (await environments()).find(({ config }) => config.name === 'acme-site@next');
    expect(made?.config.github_repos).toEqual([{ owner: 'acme', repo: 'site', ref: 'next' }]);
    expect((await started()).agent_config?.environment_id).toBe(made?.uid);
    // The next run finds the environment. Another environment in the list empties the field.
    await open();
    await page.getByLabel('Prompt').fill('Do it again');
    await page.getByLabel('Environment', { exact: true }).selectOption('');
    await field().fill('Acme/site@next');
    await page.getByText('The run uses the environment acme-site@next.').waitFor();
    expect((await started()).agent_config?.environment_id).toBe(made?.uid);
    expect((await environments()).length).toBe(before + 1);
    await open();
    await field().fill('acme/site@next');
    await page.getByText('The run uses the environment').waitFor();
    await page.getByLabel('Environment', { exact: true }).selectOption('');
    expect(await field().inputValue()).toBe('');
    // A viewer reads why there is no button.
    await signIn(page, service, await service.newKey({ role: 'viewer' }));
    await open();
    await field().fill('acme/other');
    await page.getByText('your role is viewer: a member can create one').waitFor();
    expect(browser().complaints).toEqual([]);
  });

  test('a fault behind “More” is shown, and the form has no accessibility fault', async () => {
    await open();
    await page.getByLabel('Prompt').fill('Do it');
    await page.getByText(/^More: approvals/).click();
    await page.getByLabel('At most, turns').fill('1.5');
    await page.getByText(/^More: approvals/).click();
    expect(await page.getByLabel('At most, turns').isVisible()).toBe(false);
    await page.getByRole('button', { name: /^Start run/ }).click();
    await page.getByLabel('At most, turns').waitFor();
    await page.evaluate(axe);
    for (const [width, height] of [
      [1200, 850],
      [390, 844],
      [600, 425],
    ] as const) {
      await page.setViewportSize({ width, height });
      for (const colorScheme of ['light', 'dark'] as const) {
        await page.emulateMedia({ colorScheme });
        expect(await page.evaluate<string[]>(findFaults), `${width} ${colorScheme}`).toEqual([]);
        await browser().picture(`new-run-${width}-${colorScheme}`);
      }
      expect(await tooWide(page)).toEqual([]);
    }
  });
});
