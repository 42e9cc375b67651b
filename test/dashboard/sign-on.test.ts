/** Tests single sign-on to the dashboard in a real browser, with a real identity provider. */
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { TestIdentityProvider } from '../../packages/service/test/identity-provider.ts';
import { invite, teamUidOf } from '../../packages/service/test/people.ts';
import type { TestService } from '../../packages/service/test/service.ts';
import { noBrowser, useBrowser } from '../support/browser.ts';
import { walkByTab } from '../support/keyboard-walk.ts';
import { ruledTeam, type SignOnService, startSignOnService } from '../support/sign-on.ts';

describe.skipIf(noBrowser)(`single sign-on in the dashboard${noBrowser ? ` (skipped: ${noBrowser})` : ''}`, () => {
  let signOn: SignOnService;
  let provider: TestIdentityProvider;
  let service: TestService;
  let page: Page;
  const browser = useBrowser();

  beforeAll(async () => {
    signOn = await startSignOnService();
    ({ provider, service } = signOn);
    provider.accounts.set('ada', { name: 'Ada Lovelace', email: 'ada@acme.example', groups: ['platform-leads'] });
    provider.accounts.set('grace', { name: 'Grace Hopper', groups: ['others'] });
  });
  afterAll(() => signOn.close());
  beforeEach(() => {
    ({ page } = browser());
    provider.trouble = null;
  });
  /** Signs the browser in at the identity provider, so that later sign-ins need no form. */
  const beAt = async (subject: string) =>
    await browser().context.addCookies([{ name: 'subject', value: subject, url: provider.issuer }]);
  const button = (name: string) => page.getByRole('button', { name, exact: true });

  test('a person signs in, returns to the requested address, sees the sign-on rules of the team in the settings, and signs out', async () => {
    await beAt('ada');
    await page.goto(`${service.baseUrl}/settings/members?team=${ruledTeam}`);
    await button('Continue with Acme ID').waitFor();
    expect(await page.getByLabel('API key', { exact: true }).isVisible()).toBe(false);
    await browser().picture('sign-in-providers');
    expect(await walkByTab(page)).toEqual([]);
    await button('Continue with Acme ID').click();
    await page.getByRole('table', { name: 'Rules of single sign-on' }).waitFor();
    expect(page.url()).toBe(`${service.baseUrl}/settings/members?team=${ruledTeam}`);
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

  test('a person without a team reads why access is refused, and joins a team by an invitation', async () => {
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

  test('a person can try again if the identity provider did not answer', async () => {
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

  test('an operator can sign in with an API key while the identity provider does not answer', async () => {
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
