/** Environments, agents and workers on the dashboard, in a real browser. */
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { startTestService, type TestService } from '../../packages/service/test/service.ts';
import { noBrowser, useBrowser } from '../support/browser.ts';
import { signIn } from '../support/dashboard.ts';

interface Stored {
  readonly uid: string;
  readonly config: Record<string, unknown>;
}

describe.skipIf(noBrowser)(`environments on the dashboard${noBrowser ? ` (skipped: ${noBrowser})` : ''}`, () => {
  let service: TestService;
  let page: Page;
  let complaints: string[];
  const browser = useBrowser();

  beforeAll(async () => {
    service = await startTestService();
  });
  afterAll(() => service.close());
  beforeEach(async () => {
    ({ page, complaints } = browser());
    await signIn(page, service);
  });
  const button = (name: string | RegExp) => page.getByRole('button', { name, exact: true });
  const environments = async () =>
    (await service.request<{ environments: Stored[] }>('GET', '/agent/environments')).body.environments;

  test('creates one with a fault at its field, and an edit keeps what the form does not show', async () => {
    await page.goto(`${service.baseUrl}/environments?new=true`);
    await page.getByLabel('Name', { exact: true }).fill('billing');
    await page.getByLabel('repository 1', { exact: true }).fill('acme/billing');
    await page.getByLabel('command 1', { exact: true }).fill('for i in 1 2\ndo echo $i\ndone');
    await button('Add host').click();
    await page.getByLabel('host 1', { exact: true }).fill('not a host');
    await button('Create environment').click();
    const host = page.getByLabel('host 1', { exact: true });
    await expect.poll(() => host.getAttribute('aria-invalid')).toBe('true');
    expect(await page.locator(':focus').getAttribute('aria-label')).toBe('host 1');
    await host.fill('api.example.com');
    await page.getByLabel('npm').check();
    await button('Create environment').click();
    await page.getByRole('heading', { name: 'billing' }).waitFor();
    const [made] = await environments();
    expect(made?.config).toMatchObject({
      github_repos: [{ owner: 'acme', repo: 'billing' }],
      setup_commands: ['for i in 1 2\ndo echo $i\ndone'],
      network: { allowed_hosts: ['api.example.com'], presets: ['npm'] },
    });
    const body = { config: { ...made?.config, variables: { LEVEL: '2' } } };
    await service.request('PUT', `/agent/environments/${made?.uid}`, { body });

    await page.goto(`${service.baseUrl}/environments/${made?.uid}?edit=true`);
    await page.getByLabel('What it is for').fill('The <i>billing</i> service');
    await button('Save').click();
    await page.getByText('The <i>billing</i> service').waitFor();
    expect((await environments())[0]?.config).toEqual({ ...body.config, description: 'The <i>billing</i> service' });
    await browser().picture('environment');

    await button('Invite…').click();
    await page.getByLabel('Address, or UID of the person').fill('ada@example.com');
    await button('Invite').click();
    await page.getByRole('cell', { name: 'ada@example.com', exact: true }).waitFor();
    await button('Share by link').click();
    await button('End sharing…').click();
    await button('End sharing').click();
    await button('Share by link').waitFor();
    expect(complaints).toEqual([]);
  });

  test('names the agents that cannot run, and how a worker is connected', async () => {
    const [environment] = await environments();
    const agent = { name: 'Release bot', environment_id: environment?.uid };
    expect((await service.request('POST', '/agent/identities', { body: agent })).status).toBe(201);
    await service.request('DELETE', `/agent/environments/${environment?.uid}`);
    await page.goto(`${service.baseUrl}/agents`);
    await page.getByRole('row', { name: /Release bot.*cannot run/ }).waitFor();
    await browser().picture('agents');
    await page.getByRole('link', { name: 'Workers' }).click();
    await page.getByText('None is connected.').waitFor();
    expect(complaints).toEqual([]);
  });
});
