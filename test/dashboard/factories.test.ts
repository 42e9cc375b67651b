/** Tests the screens for factories of the dashboard in a real browser, with a definition in a real git repository. */
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { baseFiles, filesOf } from '../../packages/service/test/definitions.ts';
import { startTestService, type TestService } from '../../packages/service/test/service.ts';
import { type FakeGitHost, startFakeGitHost } from '../fakes/git-host.ts';
import { noBrowser, useBrowser } from '../support/browser.ts';
import { signIn } from '../support/dashboard.ts';

describe.skipIf(noBrowser)(`factories on the dashboard${noBrowser ? ` (skipped: ${noBrowser})` : ''}`, () => {
  let git: FakeGitHost;
  let service: TestService;
  let page: Page;
  let complaints: string[];
  const browser = useBrowser();

  beforeAll(async () => {
    git = await startFakeGitHost();
    service = await startTestService({ env: { RUNYARD_CODE_HOST_URL: git.template } });
  });
  afterAll(async () => {
    await service.close();
    await git.close();
  });
  beforeEach(async () => {
    ({ page, complaints } = browser());
    await signIn(page, service);
  });
  const button = (name: string | RegExp) => page.getByRole('button', { name, exact: true });

  test('a pasted definition is planned, shown and applied', async () => {
    const made = await service.request<{ uid: string }>('POST', '/factory', { body: { name: 'Pasted' } });
    const address = `${service.baseUrl}/factories/${made.body.uid}`;
    await service.request('PUT', '/secrets/PASTED', { body: { value: 'pasted-secret-of-a-sender', scope: 'team' } });
    await page.goto(`${address}?tab=definition`);
    await button('Paste a definition').click();
    await button('Add a file').click();
    await page.getByLabel('Path of file 3').fill('webhooks/pasted.yaml');
    await page.getByLabel('Content of webhooks/pasted.yaml').fill('secretName: [');
    await button('Plan').click();
    await page
      .getByText(/webhooks\/pasted\.yaml/)
      .first()
      .waitFor();
    await page.getByLabel('Content of webhooks/pasted.yaml').fill('secretName: PASTED\n');
    await button('Plan').click();
    await page.getByText('Creates').first().waitFor();
    await page.getByText('the webhook pasted').waitFor();
    await browser().picture('definition');
    await button(/^Apply/).click();
    await page.getByText('Applied version 1').waitFor();
    await page.goto(address);
    await page.getByRole('link', { name: 'pasted', exact: true }).waitFor();
    await browser().picture('factory');
    expect(complaints).toEqual([]);
  });

  test('a factory that follows git says in one line whether it is as in git, and shows what differs', async () => {
    const { request } = service;
    const made = await request<{ uid: string }>('POST', '/factory', { body: { name: 'Followed' } });
    const path = `/factory/${made.body.uid}`;
    await request('PUT', '/secrets/ALERTS', { body: { value: 'a/secret/of/alerts', scope: 'team' } });
    const files = filesOf(baseFiles);
    await git.replace('acme', 'factories', { files });
    const address = `${service.baseUrl}/factories/${made.body.uid}?tab=source`;
    await page.goto(address);
    await button('Follow a repository').click();
    const field = page.getByLabel('Repository', { exact: true });
    for (const wrong of ['https://elsewhere.example/acme/factories', '<img src=x>/factories', 'file:///etc']) {
      await field.fill(wrong);
      await button('Follow').click();
      await expect.poll(() => field.getAttribute('aria-invalid')).toBe('true');
    }
    await field.fill('acme/factories');
    await browser().picture('source-new');
    await button('Follow').click();
    await page.getByText(/^As in git: the factory is as commit [0-9a-f]{8} defines it\.$/).waitFor();
    const { webhooks } = (await request<{ webhooks: { uid: string }[] }>('GET', `${path}/webhooks`)).body;
    await request('DELETE', `${path}/webhooks/${webhooks[0]?.uid}`);
    await git.replace('acme', 'factories', {
      files: { ...files, 'agents/helper/agent.md': '---\nagentType: CUSTOM\n---\n\nHelp.\n' },
    });
    await button('Compare again').click();
    await page
      .getByText(/^Not as in git \(commit [0-9a-f]{8}\): 1 change of git not applied yet, 1 change made/)
      .waitFor();
    await page.getByText('the agent helper').waitFor();
    await page.getByText('the webhook alerts').waitFor();
    await browser().picture('source');
    await page.reload();
    await page.getByRole('link', { name: 'Definition 1 changed' }).click();
    await page.getByText('Creates the webhook alerts').waitFor();
    await browser().picture('definition-drift');
    await page.goto(address);
    await button('Apply the newest commit').click();
    await page.getByText('Applied version 2').waitFor();
    await page.getByText(/^As in git/).waitFor();
    await git.replace('acme', 'factories', { files: { ...files, 'factory.yaml': 'schemaVersion: v9\n' } });
    await button('Apply the newest commit').click();
    await page.getByText(/^Not as in git: commit [0-9a-f]{8} cannot be applied/).waitFor();
    await page.getByRole('link', { name: 'Source in git faulty' }).waitFor();
    await browser().picture('source-faulty');
    await button('Detach…').click();
    await button('Detach').click();
    await button('Follow a repository').waitFor();
    expect((await request('GET', `${path}/source`)).status).toBe(404);
    expect(complaints).toEqual([]);
  });
});
