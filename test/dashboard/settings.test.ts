/** Tests the settings screens of the dashboard in a real browser. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { TeamBudget } from '@runyard/contract/team/budgets';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { startTestService, type TestService } from '../../packages/service/test/service.ts';
import { noBrowser, useBrowser } from '../support/browser.ts';
import { signIn } from '../support/dashboard.ts';

describe.skipIf(noBrowser)(`the settings of the dashboard${noBrowser ? ` (skipped: ${noBrowser})` : ''}`, () => {
  let service: TestService;
  let page: Page;
  let complaints: string[];
  const browser = useBrowser();

  beforeAll(async () => {
    service = await startTestService({ env: { RUNYARD_ALLOW_PRIVATE_NETWORKS: '127.0.0.0/8' } });
  });
  afterAll(() => service.close());
  beforeEach(async () => {
    ({ page, complaints } = browser());
    await browser().context.grantPermissions(['clipboard-read', 'clipboard-write']);
    await signIn(page, service);
  });
  const open = (tab: string) => page.goto(`${service.baseUrl}/settings/${tab}`);
  /** Changes to another tab of the settings without loading the page again. */
  const go = (tab: string) =>
    page.getByRole('navigation', { name: 'Settings' }).getByRole('link', { name: tab }).click();
  const button = (name: string | RegExp) => page.getByRole('button', { name, exact: true });

  test('an administrator invites a person, changes a role and removes the person', async () => {
    await open('members');
    await button('Invite').click();
    await page.getByLabel('For whom').fill('Ada <b>of</b> the platform');
    await button('Make the invitation').click();
    const dialog = page.getByRole('dialog');
    const [, key = ''] = /#invitation=(\S+)/.exec((await dialog.locator('pre').first().textContent()) ?? '') ?? [];
    expect(key).not.toBe('');
    await expect.poll(() => dialog.count()).toBe(1);
    // The page shows the key only once, so Escape must not close the dialog.
    await page.keyboard.press('Escape');
    expect(await dialog.isVisible()).toBe(true);
    await button('Copy value').click();
    await button('Done').click();
    await dialog.waitFor({ state: 'detached' });
    expect(await page.content()).not.toContain(key);
    await page.getByText('Ada <b>of</b> the platform').waitFor();
    await browser().picture('settings-members');

    const body = { key, display_name: 'Ada Lovelace' };
    await service.request('POST', '/team-invitations/accept', { key: null, body });
    await page.reload();
    await page.getByLabel('Role of Ada Lovelace').selectOption('viewer');
    await page.getByText('Ada Lovelace is viewer now.').waitFor();
    await page.getByRole('button', { name: /^Undo/ }).click();
    await expect.poll(() => page.getByLabel('Role of Ada Lovelace').inputValue()).toBe('member');
    await button('Actions for Ada Lovelace').click();
    await page.getByRole('menuitem', { name: 'Remove…' }).click();
    await button('Remove').click();
    await page.getByRole('alertdialog').waitFor({ state: 'detached' });
    expect(await page.getByText('Ada Lovelace', { exact: true }).count()).toBe(0);
    expect(complaints).toEqual([]);
  });

  test('a new key is shown only once, and a deleted key stops working', async () => {
    await open('keys');
    await button('New key').click();
    await page.getByLabel('Name').fill('laptop');
    await button('Create the key').click();
    const key = (await page.getByRole('dialog').locator('pre').first().textContent()) ?? '';
    expect((await service.request('GET', '/keys', { key })).status).toBe(200);
    await button('I stored it').click();
    await browser().picture('settings-keys');
    await page.getByRole('button', { name: /^Delete laptop/ }).click();
    const dialog = page.getByRole('alertdialog');
    expect(await dialog.locator(':focus').textContent()).toBe('Keep');
    await button('Delete the key').click();
    await dialog.waitFor({ state: 'detached' });
    expect((await service.request('GET', '/keys', { key })).status).toBe(401);
    // The list also contains the session of this browser. When the person ends this session, the sign-in screen opens.
    await page
      .getByRole('row', { name: /this browser/ })
      .getByRole('button')
      .click();
    await button('Sign out').click();
    await page.getByRole('heading', { name: 'Sign in', exact: true }).waitFor();
    expect(complaints).toEqual([]);
  });

  test('the page never shows a stored secret, and shows an error of the service beside the field that it concerns', async () => {
    await open('secrets');
    await button('Set secret').click();
    await page.getByLabel('Name').fill('NPM_TOKEN');
    await page.getByLabel('Value').fill('short');
    await button('Set').click();
    const value = page.getByLabel('Value');
    await page.getByText(/at least 8 characters/).waitFor();
    expect([await value.getAttribute('aria-invalid'), await value.getAttribute('type')]).toEqual(['true', 'password']);
    await value.fill('npm-value-of-a-secret');
    await button('Set').click();
    await page.getByRole('cell', { name: 'NPM_TOKEN', exact: true }).waitFor();
    expect(await page.content()).not.toContain('npm-value-of-a-secret');
    await browser().picture('settings-secrets');
    expect(complaints).toEqual([]);
  });

  test('an administrator changes models, budget, code hosts and MCP servers', async () => {
    await open('models');
    await page.getByRole('cell', { name: /^runbook/ }).waitFor();
    await browser().picture('settings-models');
    await go('Budget');
    await button('Change…').click();
    await page.getByLabel('Monthly limit, US dollars').fill('600');
    await page.getByLabel('the limit is reached').check();
    await button('Change').click();
    await page.getByText('of $600.00').waitFor();
    const budget = await service.request<TeamBudget>('GET', '/budget');
    expect(budget.body.notify).toMatchObject([{ on: 'budget', to: [expect.any(String)] }]);
    await browser().picture('settings-budget');
    await go('Code hosts');
    await button('Store credential').click();
    await page.getByLabel('Token or password').fill('a-token-of-a-code-host');
    await button('Store').click();
    await page.getByRole('cell', { name: 'every owner' }).waitFor();
    expect(await page.content()).not.toContain('a-token-of-a-code-host');
    await browser().picture('settings-code-hosts');
    await go('MCP servers');
    await button('Store server').click();
    await page.getByLabel('Name', { exact: true }).fill('docs');
    await page.getByLabel('URL').fill('http://127.0.0.1:8123/mcp');
    await button('Add header').click();
    await page.getByLabel('Name of header 1').fill('authorization');
    await page.getByLabel('Value of header 1').fill('Bearer of-a-server');
    await button('Store').click();
    await page.getByRole('cell', { name: 'authorization' }).waitFor();
    await browser().picture('settings-mcp');
    expect(complaints).toEqual([]);
  });

  test('an event subscription shows the state of its deliveries, and the audit log shows that the subscription was created', async () => {
    const receiver: Server = createServer((_request, response) => response.writeHead(500).end()).listen(0, '127.0.0.1');
    await new Promise((resolve) => receiver.once('listening', resolve));
    const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/hook`;
    await open('events');
    await button('New subscription').click();
    await page.getByLabel('Name').first().fill('Chat');
    await page.getByLabel('URL').fill(url);
    await button('Create').click();
    await button('I stored it').click();
    await page.getByRole('link', { name: 'Chat' }).click();
    await button('Send a ping').click();
    await page.getByRole('cell', { name: 'ping' }).waitFor();
    await page.getByRole('region', { name: 'Deliveries' }).getByRole('button', { name: 'Waiting' }).first().click();
    await page.waitForURL(/status=pending/);
    await browser().picture('settings-event');
    await go('Audit log');
    await page.getByLabel('Kind of thing').selectOption('event_subscription');
    await page.waitForURL(/subject_type=event_subscription/);
    await page.getByRole('button', { name: 'event_subscription.create' }).click();
    await page.getByText('"Chat"').waitFor();
    await page.waitForURL(/entry=/);
    await browser().picture('settings-audit');
    await page.getByRole('row', { name: 'event_subscription.create' }).getByRole('link', { name: 'Chat' }).click();
    await page.waitForURL(/settings\/events/);
    const factory = await service.request<{ uid: string }>('POST', '/factory', { body: { name: 'Billing' } });
    const webhook = { name: 'Deploys', provider: 'github' };
    await service.request('POST', `/factory/${factory.body.uid}/webhooks`, { body: webhook });
    await open('audit?subject_type=webhook');
    await page.getByRole('link', { name: 'Deploys' }).click();
    await page.waitForURL(/\/factories\?tab=webhooks/);
    await page.getByRole('link', { name: 'Deploys' }).waitFor();
    receiver.close();
    expect(complaints).toEqual([]);
  });

  test('a long audit log renders only the rows near the visible part, and prints all rows', async () => {
    await service.deps.db.query(
      `INSERT INTO audit_entries (id, team_id, actor_kind, actor_uid, action, subject_type, subject_uid)
       SELECT new_uuid_v7(), id, 'user', 'somebody', 'secret.update', 'secret', 'SECRET_' || n FROM teams, generate_series(1, 250) n WHERE id = $1`,
      [service.teamId],
    );
    await open('audit?subject_type=secret');
    await page.getByRole('cell', { name: 'SECRET_250', exact: true }).waitFor();
    await button('Older changes').click();
    await button('Older changes').click();
    await button('Older changes').waitFor({ state: 'detached' });
    const rows = page.getByRole('table', { name: 'Audit log' }).locator('tbody tr[data-index]');
    expect(await rows.count()).toBeLessThan(100);
    await page.evaluate(`dispatchEvent(new Event('beforeprint'))`);
    await page.getByRole('cell', { name: 'SECRET_1', exact: true }).waitFor();
    expect(await rows.count()).toBeGreaterThanOrEqual(250);
    await page.evaluate(`dispatchEvent(new Event('afterprint'))`);
    await page.getByRole('cell', { name: 'SECRET_1', exact: true }).waitFor({ state: 'detached' });
    // The browser moves rows while it scrolls up, so wait for the first row before the click.
    await page.locator('nav[aria-label=Settings] + div').evaluate((scroller) => scroller.scrollTo(0, 0));
    const newest = page.getByRole('row').filter({ has: page.getByRole('cell', { name: 'SECRET_250', exact: true }) });
    await newest.waitFor();
    await newest.getByRole('button', { name: 'secret.update' }).click();
    await page.waitForURL(/entry=/);
    expect(complaints).toEqual([]);
  });

  test('a viewer cannot open budget and audit log, and disabled buttons name the role that a person needs', async () => {
    const viewer = await service.newKey({ role: 'viewer' });
    await browser().context.clearCookies();
    await signIn(page, service, viewer);
    await open('members');
    const invite = page.getByRole('button', { name: /^Invite/ });
    expect([await invite.getAttribute('aria-disabled'), await invite.getAttribute('title')]).toEqual([
      'true',
      'Needs the role admin',
    ]);
    const tabs = await page.getByRole('navigation', { name: 'Settings' }).getByRole('link').allTextContents();
    expect(tabs).toEqual(['Members', 'Keys', 'Secrets', 'Models', 'GitHub', 'MCP servers']);
    await open('audit');
    await page.getByText(/You need at least the role admin to read this/).waitFor();
    expect(complaints).toEqual([]);
  });
});
