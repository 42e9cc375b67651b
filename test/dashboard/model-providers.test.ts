/** Tests in a real browser that an owner enters the key of a model provider, and starts the first run of an agent, without a terminal. */
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { newTeam } from '../../packages/service/test/people.ts';
import { startTestService, type TestService } from '../../packages/service/test/service.ts';
import { type FakeModels, fakeModelKeys, startFakeModels } from '../fakes/models.ts';
import { noBrowser, useBrowser } from '../support/browser.ts';
import { signIn } from '../support/dashboard.ts';

describe.skipIf(noBrowser)(
  `keys of model providers in the dashboard${noBrowser ? ` (skipped: ${noBrowser})` : ''}`,
  () => {
    let service: TestService;
    let fake: FakeModels;
    let page: Page;
    let complaints: string[];
    const browser = useBrowser();

    beforeAll(async () => {
      fake = await startFakeModels();
      service = await startTestService({
        env: { RUNYARD_OPENAI_BASE_URL: fake.url, RUNYARD_ANTHROPIC_BASE_URL: fake.url },
      });
    });
    afterAll(async () => {
      await service.close();
      await fake.close();
    });
    beforeEach(async () => {
      ({ page, complaints } = browser());
      await signIn(page, service);
    });

    const enter = async (key: string) => {
      await page.getByLabel('API key').fill(key);
      await page.getByRole('button', { name: 'Store and test' }).click();
    };

    test('the first page asks an owner for a key, and then starts a run of an agent', async () => {
      await page.goto(`${service.baseUrl}/runs`);
      await page.getByRole('heading', { name: 'Start your first run' }).waitFor();
      await browser().picture('onboarding-without-a-key');
      await page.getByRole('button', { name: 'OpenAI', exact: true }).click();
      await browser().picture('onboarding-key-dialog');
      await enter(fakeModelKeys.openai);
      await page.getByText('OpenAI accepts the key.').waitFor();
      await browser().picture('onboarding-with-a-key');
      await page.getByRole('button', { name: 'Run the agent' }).click();
      await page.waitForURL(/\/runs\/[\da-f-]{36}/);
      const [run] = (await service.ok<{ runs: { agent_config: { model_id: string } }[] }>('GET', '/agent/runs')).runs;
      expect(run?.agent_config.model_id).toMatch(/^openai\//);
      expect(await page.content()).not.toContain(fakeModelKeys.openai);
      expect(complaints).toEqual([]);
    });

    test('the settings show the source of each access, test, replace and delete it, and never show a key', async () => {
      await page.goto(`${service.baseUrl}/settings/models`);
      const row = page.getByRole('row').filter({ hasText: 'OpenAI' }).first();
      await page.getByRole('button', { name: /(Enter|Replace) key of OpenAI/ }).click();
      await enter(`${fakeModelKeys.openai}-wrong`);
      await page.getByText('OpenAI refuses the key (status 401).').waitFor();
      await page.getByRole('button', { name: 'Replace key of OpenAI' }).click();
      await enter(fakeModelKeys.openai);
      await page.getByText('OpenAI accepts the key.').waitFor();
      await row.getByText(`…${fakeModelKeys.openai.slice(-4)}`).waitFor();
      await page.getByRole('button', { name: 'Enter key of Own endpoint' }).click();
      await page.getByLabel('Base URL').fill('http://169.254.169.254/v1');
      await page.getByRole('button', { name: 'Store and test' }).click();
      await page.getByText('is not public').waitFor();
      await browser().picture('providers-refused-address');
      await page.keyboard.press('Escape');
      await browser().picture('providers');
      await page.emulateMedia({ colorScheme: 'dark' });
      await page.setViewportSize({ width: 390, height: 844 });
      await browser().picture('providers-narrow-dark');
      await page.setViewportSize({ width: 1280, height: 800 });
      await page.getByRole('button', { name: 'Delete the key of OpenAI' }).click();
      await page.getByRole('button', { name: 'Delete the key', exact: true }).click();
      await page.getByRole('button', { name: 'Enter key of OpenAI' }).waitFor();
      expect(await page.content()).not.toContain(fakeModelKeys.openai);
    });

    test('an owner of another team sees no keys, and reads whom to ask', async () => {
      const team = await newTeam(service, 'Other owners');
      await page.goto(`${service.baseUrl}/runs?team=${team}`);
      await page.getByText('An owner of the installation enters the key').waitFor();
      await page.goto(`${service.baseUrl}/settings/models?team=${team}`);
      await page.getByRole('table', { name: 'Models' }).waitFor();
      expect(await page.getByRole('table', { name: 'Providers of models' }).count()).toBe(0);
    });
  },
);
