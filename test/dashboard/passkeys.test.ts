/** Tests passkeys in a real browser, with the virtual authenticator of Chromium. */
import type { CDPSession, Page } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { invite, teamUidOf } from '../../packages/service/test/people.ts';
import { startTestService, type TestService } from '../../packages/service/test/service.ts';
import { noBrowser, useBrowser } from '../support/browser.ts';
import { walkByTab } from '../support/keyboard-walk.ts';

describe.skipIf(noBrowser)(`passkeys in the dashboard${noBrowser ? ` (skipped: ${noBrowser})` : ''}`, () => {
  let service: TestService;
  /** The base URL of the service has an IP address, so its passkeys belong to localhost. */
  let origin: string;
  let page: Page;
  let devtools: CDPSession;
  let authenticatorId: string;
  const browser = useBrowser();

  beforeAll(async () => {
    service = await startTestService();
    origin = service.baseUrl.replace('127.0.0.1', 'localhost');
  });
  afterAll(() => service.close());
  beforeEach(async () => {
    ({ page } = browser());
    devtools = await browser().context.newCDPSession(page);
    await devtools.send('WebAuthn.enable');
    ({ authenticatorId } = await addAuthenticator('internal'));
  });
  const addAuthenticator = (transport: 'internal' | 'usb') =>
    devtools.send('WebAuthn.addVirtualAuthenticator', {
      options: {
        protocol: 'ctap2',
        transport,
        hasResidentKey: true,
        hasUserVerification: true,
        isUserVerified: true,
        automaticPresenceSimulation: true,
      },
    });
  const button = (name: string | RegExp) => page.getByRole('button', { name, exact: true });
  const newInvitation = async () => await invite(service, await teamUidOf(service), 'member');
  const joinAs = async (name: string) => {
    await page.goto(`${origin}/sign-in#invitation=${await newInvitation()}`);
    await page.getByLabel('Your name').fill(name);
    await button('Join with a passkey').click();
    await button(name).waitFor();
  };
  const signOut = async (name: string) => {
    await button(name).click();
    await page.getByRole('menuitem', { name: 'Sign out', exact: true }).click();
    await button('Sign in with a passkey').waitFor();
  };

  test('a person joins with the link of an invitation and a passkey, signs out, and signs in with the passkey', async () => {
    await page.goto(`${origin}/sign-in#invitation=${await newInvitation()}`);
    await page.getByLabel('Your name').waitFor();
    await browser().picture('invitation-passkey');
    expect(await walkByTab(page)).toEqual([]);
    await page.getByLabel('Your name').fill('Ada Lovelace');
    await button('Join with a passkey').click();
    await button('Ada Lovelace').waitFor();
    await signOut('Ada Lovelace');
    await browser().picture('sign-in-passkey');
    await button('Sign in with a passkey').click();
    await button('Ada Lovelace').waitFor();
    expect(browser().complaints).toEqual([]);
  });

  test('the settings list, add, rename and remove passkeys, and the browser of a removed passkey is signed out', async () => {
    await joinAs('Grace Hopper');
    await page.goto(`${origin}/settings/keys`);
    const table = page.getByRole('table', { name: 'Passkeys' });
    await table.getByText('this browser').waitFor();
    await button(/^Remove/).click();
    await button('Remove the passkey').click();
    await page.getByText(/could not sign in again/).waitFor();
    await button('Keep').click();
    await button('Add a passkey').click();
    await button('Continue').click();
    await page.getByText('This device has a passkey for you already.').waitFor();
    await browser().picture('settings-passkey-known');
    await button('Back').click();
    await addAuthenticator('usb');
    await button('Add a passkey').click();
    await page.getByRole('textbox', { name: 'Name' }).fill('Security key');
    await button('Continue').click();
    await table.getByRole('cell', { name: 'Security key', exact: true }).waitFor();
    await button('Rename Security key').click();
    await page.getByRole('textbox', { name: 'Name' }).fill('Blue <b>key</b>');
    await button('Rename').click();
    await table.getByText('Blue <b>key</b>').waitFor();
    await browser().picture('settings-passkeys');
    await button(/^Remove (Chrome|Passkey)/).click();
    await button('Remove the passkey').click();
    await page.getByRole('heading', { name: 'Sign in', exact: true }).waitFor();
    expect(browser().complaints).toEqual([]);
  });

  test('an authenticator that does not verify the person signs nobody in, and the page says what happened', async () => {
    await joinAs('Alan Turing');
    await signOut('Alan Turing');
    await devtools.send('WebAuthn.setUserVerified', { authenticatorId, isUserVerified: false });
    await button('Sign in with a passkey').click();
    await page.getByText(/^No passkey was used/).waitFor();
    expect(await button('Alan Turing').count()).toBe(0);
  });

  test('a page at another address of the service names the address of the passkeys', async () => {
    await page.goto(`${service.baseUrl}/sign-in`);
    await button('Sign in with a passkey').click();
    await page.getByText(`The passkeys of this service belong to ${origin}.`).waitFor();
    await browser().picture('sign-in-passkey-elsewhere');
  });
});
