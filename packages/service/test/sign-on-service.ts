/** Test support: a service with single sign-on at a real identity provider, and browsers that sign in there. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Session } from '@runyard/contract/team/browser-sessions';
import { afterAll, afterEach, expect } from 'vitest';
import { confirmPeople } from '../src/team/access/sign-on/refresh.ts';
import { type PageHeaders, pageHeaders } from './browser-session.ts';
import { type Account, clientId, clientSecret, startIdentityProvider } from './identity-provider.ts';
import { openTestService, type TestAnswer, type TestService } from './service.ts';

/** UID of the team whose members are managed by rules. */
export const ruled = 'RuledRuledRuledRuled22';

/** Opens a service with `text` as its file of sign-on settings, and with the team `ruled`. Removes both after the tests of the file. */
export async function openRuledService(text: string): Promise<TestService> {
  const folder = await mkdtemp(path.join(tmpdir(), 'runyard-sign-on-'));
  const file = path.join(folder, 'sign-on.yaml');
  await writeFile(file, text, { mode: 0o600 });
  const service = await openTestService({ env: { RUNYARD_OIDC_FILE: file, RUNYARD_TRUSTED_PROXIES: '127.0.0.1' } });
  await service.deps.db.query(`INSERT INTO teams (id, uid, name) VALUES (gen_random_uuid(), $1, 'Ruled')`, [ruled]);
  afterAll(() => rm(folder, { recursive: true }));
  return service;
}

let addresses = 0;

/**
 * Returns functions that act as browsers at the service. `signIn` opens the provider's address as the person, and returns the address to
 * which the provider sends the browser back.
 */
export function browsersAt(
  service: TestService,
  provider: string,
  signIn: (url: string, person: string) => Promise<URL>,
) {
  const { db } = service.deps;
  /** Returns the headers of a page in a new browser, with a new client address in the header that a proxy adds. */
  const newPage = () => {
    addresses += 1;
    return { origin: service.baseUrl, 'x-forwarded-for': `10.0.${Math.floor(addresses / 250)}.${addresses % 250}` };
  };
  const begin = async (body: Record<string, unknown> = {}, page = newPage()) => {
    const answer = await service.request<{ url: string; detail?: string }>('POST', '/sign-on', {
      key: null,
      headers: page,
      body: { provider, ...body },
    });
    return { ...answer, url: answer.body?.url ?? '', cookie: answer.headers.get('set-cookie')?.split(';')[0] ?? '' };
  };
  const finish = async (
    cookie: string,
    query: string,
    headers: Record<string, string> = {},
  ): Promise<TestAnswer<{ next?: string; display_name: string; detail?: string }>> =>
    await service.request('POST', '/browser-sessions', {
      key: null,
      headers: { ...newPage(), cookie, ...headers },
      body: { sign_on: query },
    });
  const queryOf = async (url: string, person: string) => (await signIn(url, person)).search.slice(1);
  const signOn = async (person: string, body: Record<string, unknown> = {}) => {
    const { cookie, url } = await begin(body);
    return await finish(cookie, await queryOf(url, person));
  };

  /** Returns the headers of a page in the session that the answer has begun. */
  function sessionOf(answer: TestAnswer): PageHeaders {
    expect(answer.status, answer.text).toBe(200);
    const [, session = ''] = answer.headers.getSetCookie();
    return pageHeaders(service, { ...answer, headers: new Headers({ 'set-cookie': session }) });
  }
  const get = async <T>(headers: Record<string, string>, url: string) =>
    await service.request<T>('GET', url, { key: null, headers });
  const roleIn = async (headers: Record<string, string>, teamUid = ruled) =>
    (await get<Session>(headers, '/session')).body?.teams?.find(({ uid }) => uid === teamUid)?.role;
  const newKeyOf = async (headers: Record<string, string>) =>
    (
      await service.request<{ key: string }>('POST', '/keys', {
        key: null,
        headers,
        body: { name: 'K', kind: 'personal' },
      })
    ).body.key;
  const works = async (key: string) => (await service.request('GET', '/keys', { key })).status === 200;

  /** Asks the providers whether all people may still sign in, as the background loop does when the next check is due. */
  async function confirmAll(): Promise<void> {
    await db.query(`UPDATE sign_on_identities SET next_check_at = now() WHERE next_check_at IS NOT NULL`);
    await confirmPeople(service.deps).work(new AbortController().signal);
  }

  return { newPage, begin, finish, queryOf, signOn, sessionOf, get, roleIn, newKeyOf, works, confirmAll };
}

/** Opens the service for the tests of a file. */
export async function openSignOnService() {
  const provider = await startIdentityProvider();
  const folder = await mkdtemp(path.join(tmpdir(), 'runyard-sign-on-'));
  const secretFile = path.join(folder, 'secret');
  await writeFile(secretFile, `${clientSecret}\n`);
  const service = await openRuledService(`
providers:
  - id: acme
    name: Acme
    issuer: ${provider.issuer}
    client_id: ${clientId}
    client_secret_file: ${secretFile}
    scopes: [profile, email, groups, offline_access]
    parameters: { prompt: consent }
    timeout_seconds: 3
  - { id: gone, name: Gone, issuer: 'http://127.0.0.1:9', client_id: a, timeout_seconds: 1 }
teams:
  - team: ${ruled}
    rules:
      - { provider: acme, group: g-readers, role: viewer }
      - { provider: acme, group: g-makers, role: member }
      - { provider: acme, group: g-leads, role: admin }
      - { provider: gone, group: g-makers, role: owner }
`);
  provider.register(`${service.baseUrl}/sign-in`);
  afterAll(async () => {
    await provider.close();
    await rm(folder, { recursive: true });
  });
  afterEach(() => {
    provider.changeToken = null;
    provider.trouble = null;
  });

  let count = 0;
  /** Makes an account at the provider. Returns its subject. */
  const newAccount = (groups: readonly string[], more: Partial<Account> = {}): string => {
    count += 1;
    const subject = `person${count}`;
    provider.accounts.set(subject, { name: `Person ${count}`, email: 'same@example.com', groups, ...more });
    return subject;
  };

  return { service, provider, newAccount, ...browsersAt(service, 'acme', provider.signIn) };
}
