/** Tests the screens for environments, agents and workers of the dashboard in a real browser. */
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

  test('shows a fault at the wrong field, creates an environment, and changes only the edited fields', async () => {
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
    await page.getByLabel(/^own Debian/).check();
    await button('Create environment').click();
    await page.getByRole('heading', { name: 'billing' }).waitFor();
    const [made] = await environments();
    expect(made?.config).toMatchObject({
      github_repos: [{ owner: 'acme', repo: 'billing' }],
      setup_commands: ['for i in 1 2\ndo echo $i\ndone'],
      system: 'debian',
      network: { allowed_hosts: ['api.example.com'], presets: ['npm'] },
    });
    expect(made?.config).not.toHaveProperty('protected_branches');
    const secret = { value: 'a-secret-of-the-team', scope: 'team' };
    expect((await service.request('PUT', '/secrets/NPM_TOKEN', { body: secret })).status).toBe(200);

    await page.goto(`${service.baseUrl}/environments/${made?.uid}?edit=true`);
    await page.getByLabel('What it is for').fill('The <i>billing</i> service');
    await button('Add variable').click();
    await page.getByLabel('Name of variable 1').fill('LEVEL');
    await page.getByLabel('Value of variable 1').fill('2');
    await button('Add secret').click();
    await page.getByLabel('secret 1', { exact: true }).fill('NPM_TOKEN');
    await page.getByLabel('form of secret 1').selectOption('file');
    await page.getByLabel('programs that get secret 1').selectOption('setup');
    await button('Add service').click();
    await page.getByLabel('name of service 1').fill('redis');
    await page.getByLabel('command of service 1').fill('exec redis-server');
    await page.getByLabel('port of service 1').fill('6379');
    await page.getByLabel('check of service 1').fill('redis-cli ping');
    await button('Add service').click();
    await page.getByLabel('name of service 2').fill('db');
    await page.getByLabel('image of service 2').fill('postgres:17');
    await page.getByLabel('port of service 2').fill('5432');
    await button('Add branch').click();
    await page.getByLabel('branch 2', { exact: true }).fill('release/*');
    await page.getByLabel('Memory, MB').fill('12');
    await page.getByLabel('Keep a failed setup, minutes').fill('5');
    await page.getByLabel(/^web search/).check();
    await page.getByLabel('Comments', { exact: true }).fill('51');
    await page.getByLabel('Resolved threads').fill('3');
    await button('Save').click();
    expect(await page.locator('input:invalid').getAttribute('name')).toBe('github_tools.comment');
    await page.getByLabel('Comments', { exact: true }).fill('2');
    await button('Save').click();
    const memory = page.getByLabel('Memory, MB');
    await expect.poll(() => memory.getAttribute('aria-invalid')).toBe('true');
    await memory.fill('2048');
    await button('Save').click();
    await page.getByText('The <i>billing</i> service').waitFor();
    const changed = {
      ...made?.config,
      description: 'The <i>billing</i> service',
      variables: { LEVEL: '2' },
      secrets: [{ name: 'NPM_TOKEN', as: 'file', phase: 'setup' }],
      services: [
        { name: 'redis', command: 'exec redis-server', port: 6379, ready: 'redis-cli ping' },
        { name: 'db', image: 'postgres:17', port: 5432 },
      ],
      protected_branches: ['HEAD', 'release/*'],
      limits: { memory_mb: 2048 },
      failure_session_retention_minutes: 5,
      provider_tools: ['web_search'],
      github_tools: { comment: 2, resolve_thread: 3 },
    };
    expect((await environments())[0]?.config).toEqual(changed);
    await page.goto(`${service.baseUrl}/environments/${made?.uid}?edit=true`);
    await button('Save').click();
    await button(/^Edit/).waitFor();
    await expect.poll(() => page.getByLabel('What it is for').count()).toBe(0);
    expect((await environments())[0]?.config).toEqual(changed);
    await page.getByText('comment ×2, resolve thread ×3').waitFor();
    for (const text of ['redis on port 6379: exec redis-server, ready after redis-cli ping', 'only for the setup'])
      await page.getByText(text).waitFor();
    await browser().picture('environment');
    await button(/^Edit/).click();
    await browser().picture('environment-form');
    for (const label of ['Comments', 'Resolved threads']) await page.getByLabel(label, { exact: true }).fill('');
    await button('Save').click();
    await page.getByText('comment ×2').waitFor({ state: 'detached' });
    const { github_tools: _tools, ...others } = changed;
    expect((await environments())[0]?.config).toEqual(others);

    await button(/^Test the setup/).click();
    await page.waitForURL(/\/runs\/[0-9a-f-]{36}/);
    const run = (await service.request('GET', `/agent/runs/${page.url().split('/').at(-1)}`)).body;
    expect(run).toMatchObject({
      title: 'Test of the setup of billing',
      agent_config: { environment_id: made?.uid, model_id: 'runbook', refresh_environment: true },
    });
    await page.goBack();

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

  test('creates, renames and deletes an agent, and shows its key once', async () => {
    await page.goto(`${service.baseUrl}/agents`);
    await button('New agent').click();
    await page.getByLabel('Name', { exact: true }).fill('Triage <b>bot</b>');
    await button('Create the agent').click();
    const row = page.getByRole('row', { name: /Triage <b>bot<\/b>/ });
    await row.getByRole('button', { name: /^Actions/ }).click();
    await page.getByRole('menuitem', { name: 'Change…' }).click();
    await page.getByLabel('Name', { exact: true }).fill('Triage');
    await page.getByLabel('Instructions').fill('Be brief.');
    await button('Save').click();
    const renamed = page.getByRole('row', { name: /Triage can run/ });
    await renamed.getByRole('button', { name: /^Actions/ }).click();
    await page.getByRole('menuitem', { name: 'New key…' }).click();
    await page.getByLabel('Name', { exact: true }).fill('ci');
    await button('Create the key').click();
    await page.getByText('It is shown only once.').waitFor();
    const key = (await page.getByRole('dialog').locator('pre, code').first().textContent())?.trim() ?? '';
    await button('I stored it').click();
    const { agents } = (await service.request<{ agents: object[] }>('GET', '/agent/identities', { key })).body;
    expect(agents).toMatchObject([{ name: 'Triage', prompt: 'Be brief.' }]);
    await renamed.getByRole('button', { name: /^Actions/ }).click();
    await page.getByRole('menuitem', { name: 'Delete…' }).click();
    await button('Delete the agent').click();
    await page.getByText('The team has none').waitFor();
    expect((await service.request('GET', '/agent/identities', { key })).status).toBe(401);
    expect(complaints).toEqual([]);
  });

  test('marks the agents that cannot run, and says that no worker is connected', async () => {
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
