import { Session } from '@runyard/contract/team/browser-sessions';
import { ListKeysResponse } from '@runyard/contract/team/keys';
import { csrfTokenOf } from '../src/edges/http/server/session-cookie.ts';
import type { TestAnswer, TestService } from './service.ts';

/** Signs in with a code or a key, in the same way as a page of the service. */
export const signIn = async (
  service: TestService,
  body: { readonly code: string } | { readonly api_key: string },
  headers: Record<string, string> = { origin: service.baseUrl },
): Promise<TestAnswer<{ expires_at: string; display_name: string }>> =>
  await service.request('POST', '/browser-sessions', { key: null, body, headers });

/** Makes a sign-in code with the key, and returns the code. */
export const newSignInCode = async (service: TestService, key = service.key): Promise<string> =>
  (await service.request<{ code: string }>('POST', '/sign-in-codes', { key })).body.code;

/** The headers that a page sends with each request in a browser session. */
export interface PageHeaders extends Record<string, string> {
  readonly cookie: string;
  readonly origin: string;
  readonly 'x-csrf-token': string;
}

/** Returns the headers that a page sends in the session that `answer` has begun. */
export function pageHeaders(service: TestService, answer: TestAnswer): PageHeaders {
  const cookie = answer.headers.get('set-cookie')?.split(';')[0] ?? '';
  return { cookie, origin: service.baseUrl, 'x-csrf-token': csrfTokenOf(cookie.replace(/^[^=]*=/, '')) };
}

/** Signs in a browser with the key. Returns the headers that its pages send. */
export const newBrowserSession = async (service: TestService, key = service.key): Promise<PageHeaders> =>
  pageHeaders(service, await signIn(service, { api_key: key }));

/** Returns functions that send requests of pages, and read the keys of the team. */
export function testPages(service: TestService) {
  const listKeys = async (key = service.key) => ListKeysResponse.parse(await service.ok('GET', '/keys', { key })).keys;
  const send = async (headers: Record<string, string>, method: string, path: string, body?: unknown) =>
    await service.request(method, path, { key: null, headers, ...(body === undefined ? {} : { body }) });
  return {
    listKeys,
    send,
    uidOf: async (raw: string) => (await listKeys()).find(({ last_four }) => last_four === raw.slice(-4))?.uid,
    rawKeyOf: (cookie: string) => cookie.replace(/^[^=]*=/, ''),
    sessionOf: async (headers: Record<string, string>) => Session.parse((await send(headers, 'GET', '/session')).body),
  };
}
