import type { TestAnswer, TestService } from './service.ts';

/** Exchanges a code as a page of the service does. */
export const exchange = async (
  service: TestService,
  code: string,
  headers: Record<string, string> = { origin: service.baseUrl },
): Promise<TestAnswer<{ key: string; expires_at: string; display_name: string }>> =>
  await service.request('POST', '/browser-sessions', { key: null, body: { code }, headers });

/** Makes a code with the key, and returns the code. */
export const newSignInCode = async (service: TestService, key = service.key): Promise<string> =>
  (await service.request<{ code: string }>('POST', '/sign-in-codes', { key })).body.code;

/** Signs in a browser with the key; returns the key of the session. */
export const newBrowserSession = async (service: TestService, key = service.key): Promise<string> =>
  (await exchange(service, await newSignInCode(service, key))).body.key;
