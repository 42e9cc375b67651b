/** Test support: signs a browser in to the dashboard of a test service. */

import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import type { TestService } from '../../packages/service/test/service.ts';

/** Signs the browser of the page in with an API key, as the sign-in screen does. Default: the key of the owner of the first team. */
export async function signIn(page: Page, service: TestService, key = service.key): Promise<void> {
  const answer = await page.request.post(`${service.baseUrl}/api/v1/browser-sessions`, {
    data: { api_key: key },
    headers: { origin: service.baseUrl },
  });
  expect(answer.status(), await answer.text()).toBe(200);
}
