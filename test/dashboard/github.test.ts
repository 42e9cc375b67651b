/** Tests in a real browser that an administrator creates a GitHub App, links an account and claims an installation, without a terminal. */
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { startTestService, type TestService } from '../../packages/service/test/service.ts';
import { type FakeGithub, startFakeGithub } from '../fakes/github/github.ts';
import { noBrowser, useBrowser } from '../support/browser.ts';
import { signIn } from '../support/dashboard.ts';

describe.skipIf(noBrowser)(`GitHub in the settings${noBrowser ? ` (skipped: ${noBrowser})` : ''}`, () => {
  let service: TestService;
  let github: FakeGithub;
  let page: Page;
  let complaints: string[];
  const browser = useBrowser();

  beforeAll(async () => {
    github = await startFakeGithub();
    service = await startTestService({ env: { RUNYARD_CODE_HOST_URL: github.template } });
  });
  afterAll(async () => {
    await service.close();
    await github.close();
  });
  beforeEach(async () => {
    ({ page, complaints } = browser());
    await signIn(page, service);
  });

  test('an App is created from its manifest, an account linked and an installation claimed', async () => {
    const acme = github.account('acme', 'Organization');
    const owner = github.account('octocat');
    github.members.set(`${acme.id} ${owner.id}`, 'admin');
    github.browserAccount = owner;
    await service.request('POST', '/factory', { body: { name: 'Acme' } });
    await page.goto(`${service.baseUrl}/settings/github`);
    await page.getByRole('heading', { name: 'No GitHub App yet' }).waitFor();
    await browser().picture('github-empty');
    await page.getByRole('button', { name: 'Create App' }).click();
    await page.getByLabel('Name').fill('acme-runyard');
    await page.getByLabel('Organization that owns it').fill('acme');
    await browser().picture('github-create');
    await page.getByRole('button', { name: 'Continue on GitHub' }).click();
    await page.getByText(`@${github.app.slug} is stored. Install it on GitHub next.`).waitFor();
    // The code is not in the address any more, so a reload does not send it again.
    expect(new URL(page.url()).search).not.toContain('code');
    await page.getByRole('button', { name: 'Link your account' }).click();
    await page.getByText('You are octocat on GitHub.').waitFor();
    const installed = github.install(acme);
    await page.goto(`${service.baseUrl}/settings/github?installation_id=${installed.id}&setup_action=install`);
    await page.getByText(`The installation ${installed.id} belongs to no team yet.`).waitFor();
    await page.getByRole('button', { name: 'Claim it' }).click();
    await browser().picture('github-claim');
    await page.getByRole('button', { name: 'Continue on GitHub' }).click();
    await page.getByText('The installation of acme belongs to the team.').waitFor();
    await page.getByRole('row').filter({ hasText: 'acme' }).waitFor();
    await browser().picture('github');
    await page.emulateMedia({ colorScheme: 'dark' });
    await page.setViewportSize({ width: 390, height: 844 });
    await browser().picture('github-narrow-dark');
    await page.setViewportSize({ width: 1280, height: 800 });
    await page.getByRole('button', { name: 'Release acme' }).click();
    await page.getByRole('button', { name: 'Release', exact: true }).click();
    await page.getByText('No installation yet.').waitFor();
    expect(complaints).toEqual([]);
    expect(github.faults).toEqual([]);
  });

  test('a claim by an account that does not administer the installation is refused on the page', async () => {
    const other = github.install(github.account('other-org', 'Organization'));
    await page.goto(`${service.baseUrl}/settings/github?installation_id=${other.id}`);
    await page.getByRole('button', { name: 'Claim it' }).click();
    await page.getByRole('button', { name: 'Continue on GitHub' }).click();
    await page.getByText('does not administer this installation').waitFor();
    await browser().picture('github-refused');
  });
});
