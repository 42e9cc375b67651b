/** Single sign-on in a real browser, with a real identity provider. */
import { mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import {
  clientId,
  clientSecret,
  startIdentityProvider,
  type TestIdentityProvider,
} from '../../packages/service/test/identity-provider.ts';
import { invite, teamUidOf } from '../../packages/service/test/people.ts';
import { startTestService, type TestService } from '../../packages/service/test/service.ts';
import { noBrowser, useBrowser } from '../support/browser.ts';

const ruled = 'RuledRuledRuledRuled22';

describe.skipIf(noBrowser)(`single sign-on in the dashboard${noBrowser ? ` (skipped: ${noBrowser})` : ''}`, () => {
  let provider: TestIdentityProvider;
  let service: TestService;
  let page: Page;
  const browser = useBrowser();

  beforeAll(async () => {
    // Another site than the service, as in an installation: the browser does not send strict cookies with the way back.
    provider = await startIdentityProvider('localhost');
    const file = path.join(await mkdtemp(path.join(tmpdir(), 'runyard-sign-on-')), 'sign-on.json');
    const rules = [
      { provider: 'acme', group: 'platform-leads', role: 'admin' },
      { provider: 'acme', group: 'platform', role: 'member' },
    ];
    const config = {
      providers: [
        {
          id: 'acme',
          name: 'Acme ID',
          issuer: provider.issuer,
          client_id: clientId,
          client_secret: clientSecret,
          scopes: ['profile', 'email', 'groups', 'offline_access'],
          parameters: { prompt: 'consent' },
          timeout_seconds: 1,
        },
      ],
      teams: [{ team: ruled, rules }],
    };
    await writeFile(file, JSON.stringify(config), { mode: 0o600 });
    service = await startTestService({ env: { RUNYARD_OIDC_FILE: file } });
    provider.register(`${service.baseUrl}/sign-in`);
    provider.accounts.set('ada', { name: 'Ada Lovelace', email: 'ada@acme.example', groups: ['platform-leads'] });
    provider.accounts.set('grace', { name: 'Grace Hopper', groups: ['others'] });
    await service.deps.db.query(`INSERT INTO teams (id, uid, name) VALUES (gen_random_uuid(), $1, 'Platform')`, [
      ruled,
    ]);
  });
  afterAll(async () => {
    await service.close();
    await provider.close();
  });
  beforeEach(() => {
    ({ page } = browser());
    provider.trouble = null;
  });
  /** Signs the browser in at the provider, so that it asks no more. */
  const beAt = async (subject: string) =>
    await browser().context.addCookies([{ name: 'subject', value: subject, url: provider.issuer }]);
  const button = (name: string) => page.getByRole('button', { name, exact: true });

  test('a person signs in and comes back to the address; the settings show the rules of the team; the sign-out ends the session', async () => {
    await beAt('ada');
    await page.goto(`${service.baseUrl}/settings/members?team=${ruled}`);
    await button('Continue with Acme ID').waitFor();
    expect(await page.getByLabel('API key', { exact: true }).isVisible()).toBe(false);
    await browser().picture('sign-in-providers');
    await button('Continue with Acme ID').click();
    await page.getByRole('table', { name: 'Rules of single sign-on' }).waitFor();
    expect(page.url()).toBe(`${service.baseUrl}/settings/members?team=${ruled}`);
    await page.getByText('1 person, managed by rules.').waitFor();
    await page.getByRole('cell', { name: 'platform-leads', exact: true }).waitFor();
    expect(await page.getByLabel('Role of Ada Lovelace').isDisabled()).toBe(true);
    expect(await button('Invite').count()).toBe(0);
    await browser().picture('settings-members-rules');
    await button('Ada Lovelace').click();
    await page.getByRole('menuitem', { name: 'Sign out', exact: true }).click();
    await button('Continue with Acme ID').waitFor();
    await page.goto(`${service.baseUrl}/runs`);
    await button('Continue with Acme ID').waitFor();
    expect(browser().complaints).toEqual([]);
  });

  test('a person without a group reads why, and gets in with an invitation to a team that is managed by hand', async () => {
    await beAt('grace');
    await page.goto(`${service.baseUrl}/sign-in`);
    await button('Continue with Acme ID').click();
    await page.getByText('Acme ID has signed you in, but you are in no team here.').waitFor();
    expect(page.url()).toBe(`${service.baseUrl}/sign-in`);
    expect(await button('Try again').count()).toBe(0);
    await browser().picture('sign-in-no-team');
    await button('Accept an invitation with its key').click();
    await page.getByLabel('Key of the invitation').fill(await invite(service, await teamUidOf(service), 'viewer'));
    await browser().picture('sign-in-invitation');
    await button('Join with Acme ID').click();
    await button('Grace Hopper').waitFor();
  });

  test('a provider that does not answer can be asked again with the same answer', async () => {
    await beAt('ada');
    await page.goto(`${service.baseUrl}/sign-in`);
    await button('Continue with Acme ID').waitFor();
    provider.trouble = { path: /^\/token/, with: 'silence' };
    await button('Continue with Acme ID').click();
    await page.getByText('Acme ID does not answer as it should.').waitFor();
    await browser().picture('sign-in-provider-away');
    provider.trouble = null;
    await button('Try again').click();
    await button('Ada Lovelace').waitFor();
  });

  test('the API key of the operator signs in while the provider is away', async () => {
    provider.trouble = { path: /./, with: 500 };
    await page.goto(`${service.baseUrl}/sign-in`);
    await page.getByText('With a link or an API key').click();
    await browser().picture('sign-in-other-ways');
    await page.getByLabel('API key', { exact: true }).fill(service.key);
    await button('Sign in').click();
    await button('Administrator').waitFor();
    await page.goto(`${service.baseUrl}/settings/members`);
    await page.getByText('managed by hand.').waitFor();
  });
});
