/** Tests the commands `runyard login` and `logout`, and the page on which a person allows a login, in a real browser. */
import { chmod, readFile, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { confirmPeople } from '../packages/service/src/team/access/sign-on/refresh.ts';
import { noBrowser, useBrowser } from './support/browser.ts';
import { endCommands, type RunningCommand, runCommand, startCommand } from './support/command-line.ts';
import { signIn } from './support/dashboard.ts';
import { runyardFile } from './support/programs.ts';
import { type SignOnService, startSignOnService } from './support/sign-on.ts';

const runyard = await runyardFile();

describe.skipIf(noBrowser)(`runyard login${noBrowser ? ` (skipped: ${noBrowser})` : ''}`, () => {
  let signOn: SignOnService;
  let page: Page;
  const browser = useBrowser();

  beforeAll(async () => {
    signOn = await startSignOnService();
    signOn.provider.accounts.set('ada', { name: 'Ada Lovelace', groups: ['platform'] });
  });
  afterAll(() => signOn.close());
  beforeEach(() => {
    ({ page } = browser());
  });
  afterEach(endCommands);

  const button = (name: string) => page.getByRole('button', { name, exact: true });
  const options = (env: Record<string, string> = {}) => ({
    cwd: browser().folder,
    env: {
      RUNYARD_BASE_URL: signOn.service.baseUrl,
      RUNYARD_DATA_DIR: path.join(browser().folder, 'client'),
      DISPLAY: '',
      WAYLAND_DISPLAY: '',
      ...env,
    },
  });
  const call = (args: string[]) => runCommand([runyard, ...args], options());
  const addressIn = (running: RunningCommand) => /http:\S+\/command-line\?\S+/.exec(running.output())?.[0] ?? '';
  /** Starts `login --code`. Returns the running command and the address that it prints. */
  const startWithCode = async () => {
    const running = startCommand([runyard, 'login', '--code'], { ...options(), keepsInput: true });
    await running.sees('paste the code');
    return { running, address: addressIn(running) };
  };
  const codeFor = async (address: string) => {
    await page.goto(address);
    await button('Allow').click();
    await page.getByText('Paste this into the command').waitFor();
    return (await page.locator('pre').textContent()) ?? '';
  };

  test('signs a person in with the browser of this machine and the identity provider, and the key stops working when the person leaves the group', async () => {
    const { service, provider } = signOn;
    const script = path.join(browser().folder, 'browser');
    const seen = path.join(browser().folder, 'arguments');
    await writeFile(script, `#!/bin/sh\nprintf '%s' "$*" > '${seen}'\n`);
    await chmod(script, 0o755);
    const running = startCommand([runyard, 'login'], options({ BROWSER: script }));
    await running.sees(/command-line\?/);
    const given = await readFile(seen, 'utf8');
    expect(given).not.toContain('state');
    const { searchParams } = new URL(addressIn(running));
    const port = searchParams.get('port');
    // Send a callback with a wrong `state`. Another page or another user of the machine could send it, because they can find out the port,
    // but not the `state`.
    expect((await fetch(`http://127.0.0.1:${port}/?state=forged&sealed=x`)).status).toBe(404);

    await browser().context.addCookies([{ name: 'subject', value: 'ada', url: provider.issuer }]);
    await page.goto(given.startsWith('file:') ? given : `file://${given}`);
    await button('Continue with Acme ID').click();
    await page.getByText('asks for a key with which it acts as Ada Lovelace').waitFor();
    await browser().picture('command-line');
    await button('Allow').click();
    await page.getByText('You can close this page.').waitFor();
    expect(page.url()).not.toMatch(/ryk_/);
    expect(await running.exited, running.output()).toBe(0);
    expect(running.output()).toContain(`signed in at ${service.baseUrl} as Ada Lovelace`);

    const file = path.join(browser().folder, 'client/logins.json');
    expect((await stat(file)).mode & 0o077).toBe(0);
    const users = await call(['users']);
    expect([users.code, users.output]).toEqual([0, expect.stringContaining('platform-leads is admin')]);

    provider.accounts.set('ada', { name: 'Ada Lovelace', groups: [] });
    await service.deps.db.query('UPDATE sign_on_identities SET next_check_at = now()');
    await confirmPeople(service.deps).work(new AbortController().signal);
    const after = await call(['users']);
    expect([after.code, after.output]).toEqual([1, expect.stringContaining('authentication_required')]);
  });

  test('signs in with a code from another browser; the code is valid only for this call of the command, and logout deletes the key', async () => {
    const { service } = signOn;
    await signIn(page, service);
    const first = await startWithCode();
    await page.goto(first.address);
    const shown = page.getByText(/^[A-Z2-9]{4}-[A-Z2-9]{4}$/);
    await shown.waitFor();
    expect(first.running.output()).toContain(`only if the page shows this fingerprint: ${await shown.textContent()}`);
    const code = await codeFor(first.address);
    const other = await startWithCode();
    other.running.child.stdin?.end(`${code}\n`);
    expect(await other.running.exited).toBe(1);
    expect(other.running.output()).toContain('the code is not for this command');
    first.running.child.stdin?.end(`${code}\n`);
    expect(await first.running.exited, first.running.output()).toBe(0);
    expect(first.running.output()).toContain('as Administrator');

    const keys = async () =>
      (await service.request<{ keys: { name: string }[] }>('GET', '/keys')).body.keys.filter(({ name }) =>
        name.startsWith('Command line'),
      ).length;
    expect((await call(['keys'])).code).toBe(0);
    const before = await keys();
    // Another login replaces the key.
    const again = await startWithCode();
    again.running.child.stdin?.end(`${await codeFor(again.address)}\n`);
    expect(await again.running.exited, again.running.output()).toBe(0);
    expect(await keys()).toBe(before);
    expect((await call(['logout'])).output).toContain(`signed out at ${service.baseUrl}`);
    expect(await keys()).toBe(before - 1);
    expect((await call(['logout'])).code).toBe(1);
  });

  test('says how to sign in without a browser and without a terminal', async () => {
    const { port } = new URL(signOn.service.baseUrl);
    const { code, output } = await call(['login']);
    expect(code, output).toBe(1);
    expect(output).toMatch(/http:\S+\/command-line\?key=/);
    expect(output).toContain('this machine has no desktop');
    expect(output).toContain(`ssh -L ${port}:127.0.0.1:${port} `);
    expect(output).toContain('no code was given. Run this in a terminal, or set RUNYARD_API_KEY.');
    const running = startCommand([runyard, 'login'], options({ BROWSER: 'false' }));
    await running.sees('run bin/runyard login --code');
    await running.sees(/command-line\?key=/);
  });

  test('gets no key through an incomplete address, and lets a person whose session is older than an hour sign in again', async () => {
    const { service } = signOn;
    await signIn(page, service);
    await page.goto(`${service.baseUrl}/command-line?key=short&name=a`);
    await page.getByText('This address is not complete.').waitFor();
    const { address } = await startWithCode();
    await page.goto(`${address}&port=80`);
    await page.getByText('This address is not complete.').waitFor();
    const keys = async () => (await service.deps.db.query(`SELECT FROM api_keys WHERE kind = 'personal'`)).length;
    const before = await keys();
    await page.goto(`${service.baseUrl}/command-line?key=${'A'.repeat(392)}&name=a`);
    await button('Allow').click();
    await page.getByRole('alert').waitFor();
    expect(await keys()).toBe(before);
    await service.deps.db.query(
      `UPDATE api_keys SET created_at = now() - interval '2 hours' WHERE minted_by IS NOT NULL`,
    );
    await service.deps.db.query(`SELECT pg_notify('runyard_keys', '')`);
    await page.goto(address);
    await button('Allow').click();
    await button('Sign in again').click();
    await page.getByText('With a link or an API key').click();
    await page.getByLabel('API key', { exact: true }).fill(service.key);
    await button('Sign in').click();
    await button('Allow').waitFor();
    expect(page.url()).toBe(address);
  });
});
