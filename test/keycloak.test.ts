/** Tests single sign-on with a real Keycloak: sign-in on its pages, groups, refresh tokens, and what its administrators do. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { TestService } from '../packages/service/test/service.ts';
import { browsersAt, openRuledService, ruled } from '../packages/service/test/sign-on-service.ts';
import { type Keycloak, keycloakVersion, startKeycloak } from './support/keycloak.ts';

const started = await startKeycloak();
const reason = started.kind === 'missing' ? ` (skipped: ${started.reason})` : '';

describe.skipIf(started.kind === 'missing')(`sign-on with Keycloak ${keycloakVersion}${reason}`, () => {
  const { keycloak } = started as { readonly keycloak: Keycloak };
  const password = 'a password';
  const secret = 'a secret: with % and /';
  let service: TestService;
  let acme: ReturnType<typeof browsersAt>;
  let names: ReturnType<typeof browsersAt>;

  /** Creates a realm with the client, and with a mapper that puts the groups into the claim `groups`. */
  const createRealm = async (realm: string, more: object, fullPath: boolean) => {
    const config = { 'claim.name': 'groups', 'full.path': String(fullPath), 'id.token.claim': 'true' };
    const mapper = {
      name: 'groups',
      protocol: 'openid-connect',
      protocolMapper: 'oidc-group-membership-mapper',
      config,
    };
    const client = { clientId: 'runyard', secret, redirectUris: [`${service.baseUrl}/sign-in`] };
    const groups = [{ name: 'everyone' }, { name: 'platform', subGroups: [{ name: 'leads' }] }];
    const clients = [{ ...client, protocolMappers: [mapper] }];
    await keycloak.manage('POST', '', { realm, enabled: true, groups, clients, ...more });
  };
  let count = 0;
  /** Creates a person in the groups. Returns functions that change the person. */
  const newUser = async (realm: string, ...groups: string[]) => {
    count += 1;
    const username = `person${count}`;
    const credentials = [{ type: 'password', value: password }];
    const person = { email: `${username}@acme.example`, firstName: 'Person', lastName: String(count) };
    await keycloak.manage('POST', `/${realm}/users`, { username, enabled: true, groups, credentials, ...person });
    const [found] = await keycloak.manage<{ id: string }[]>('GET', `/${realm}/users?exact=true&username=${username}`);
    const user = `/${realm}/users/${found?.id}`;
    const idOf = async (group: string) =>
      (await keycloak.manage<{ id: string }>('GET', `/${realm}/group-by-path${group}`)).id;
    return {
      username,
      user,
      subject: found?.id ?? '',
      join: async (group: string) => await keycloak.manage('PUT', `${user}/groups/${await idOf(group)}`),
      leave: async (group: string) => await keycloak.manage('DELETE', `${user}/groups/${await idOf(group)}`),
    };
  };
  const statusOf = async (headers: Record<string, string>) => (await acme.get(headers, '/session')).status;
  const identity = async (subject: string) =>
    (
      await service.deps.db.query<{ has_token: boolean; waits: boolean; is_over: boolean }>(
        `SELECT refresh_token IS NOT NULL AS has_token, next_check_at = confirmed_until AS waits, confirmed_until <= now() AS is_over
         FROM sign_on_identities WHERE subject = $1`,
        [subject],
      )
    )[0];
  const suspensions = async () =>
    (
      await service.deps.db.query<{ reason: string }>(
        `SELECT after->>'reason' AS reason FROM audit_entries WHERE action = 'sign_on.suspend'`,
      )
    ).map((row) => row.reason);

  beforeAll(async () => {
    const provider = (id: string, issuer: string, more = '') =>
      `  - { id: ${id}, name: ${id}, issuer: '${issuer}', client_id: runyard, client_secret: '${secret}', timeout_seconds: 60${more} }`;
    const { url } = keycloak;
    service = await openRuledService(`
providers:
${provider('acme', `${url}/realms/acme`)}
${provider('names', `${url}/realms/names`, ', scopes: [profile, email]')}
${provider('typo', `${url}/realms/acne`)}
${provider('elsewhere', `${url.replace('127.0.0.1', 'localhost')}/realms/acme`)}
teams:
  - team: ${ruled}
    rules:
      - { provider: acme, group: /platform, role: member }
      - { provider: acme, group: /platform/leads, role: admin }
      - { provider: names, group: leads, role: viewer }
`);
    await createRealm('acme', {}, true);
    await createRealm('names', { revokeRefreshToken: true, refreshTokenMaxReuse: 0 }, false);
    const signIn = (address: string, username: string) => keycloak.signIn(address, username, password);
    acme = browsersAt(service, 'acme', signIn);
    names = browsersAt(service, 'names', signIn);
  });
  beforeEach(async () => {
    // A test confirms only its own people.
    await service.deps.db.query('UPDATE sign_on_identities SET next_check_at = NULL');
  });
  afterEach(() => {
    keycloak.losesAnswers = null;
  });
  afterAll(() => keycloak.stop());

  test('groups with paths, and groups with plain names, decide the roles', async () => {
    const lead = await newUser('acme', '/platform/leads');
    const member = await newUser('acme', '/platform');
    const plain = await newUser('names', '/platform/leads');
    expect(await acme.roleIn(acme.sessionOf(await acme.signOn(lead.username)))).toBe('admin');
    const headers = acme.sessionOf(await acme.signOn(member.username));
    expect((await acme.get(headers, '/session')).body).toMatchObject({
      user: { display_name: 'Person 2', email: 'person2@acme.example' },
      teams: [{ uid: ruled, role: 'member' }],
    });
    expect(await names.roleIn(names.sessionOf(await names.signOn(plain.username)))).toBe('viewer');
    const other = await acme.signOn((await newUser('acme', '/everyone')).username);
    expect([other.status, other.body.detail]).toEqual([403, expect.stringContaining('in no team here')]);
    expect(service.logged.join('\n')).toContain('1 groups, first /everyone');
  });

  test('a change of groups takes effect at the next check, and the keys come back with the group', async () => {
    const { username, join, leave } = await newUser('acme', '/everyone', '/platform');
    const headers = acme.sessionOf(await acme.signOn(username));
    const key = await acme.newKeyOf(headers);
    await join('/platform/leads');
    await acme.confirmAll();
    expect(await acme.roleIn(headers)).toBe('admin');
    await leave('/platform/leads');
    await leave('/platform');
    await acme.confirmAll();
    await expect.poll(async () => [await acme.works(key), await statusOf(headers)]).toEqual([false, 401]);
    await join('/platform');
    acme.sessionOf(await acme.signOn(username));
    await expect.poll(() => acme.works(key)).toBe(true);
  });

  test('a person who leaves the last group is suspended only at the time limit, because Keycloak then omits the claim', async () => {
    const { username, subject, leave } = await newUser('acme', '/platform');
    const headers = acme.sessionOf(await acme.signOn(username));
    const key = await acme.newKeyOf(headers);
    await leave('/platform');
    await acme.confirmAll();
    expect([await acme.works(key), await acme.roleIn(headers)]).toEqual([true, 'member']);
    expect(service.logged.join('\n')).toContain('some providers omit the claim for people without groups');
    await service.deps.db.query('UPDATE sign_on_identities SET confirmed_until = now() WHERE subject = $1', [subject]);
    await service.deps.db.query(`SELECT pg_notify('runyard_keys', '')`);
    await expect.poll(() => acme.works(key)).toBe(false);
  });

  test('refresh tokens that work once are replaced at each check', async () => {
    const { username, subject } = await newUser('names', '/platform/leads');
    const key = await names.newKeyOf(names.sessionOf(await names.signOn(username)));
    for (let round = 0; round < 3; round += 1) await names.confirmAll();
    expect(await names.works(key)).toBe(true);
    expect(await identity(subject)).toEqual({ has_token: true, waits: false, is_over: false });
  });

  test('a lost answer with a new refresh token suspends nobody before the time limit', async () => {
    const { username, subject } = await newUser('names', '/platform/leads');
    const key = await names.newKeyOf(names.sessionOf(await names.signOn(username)));
    keycloak.losesAnswers = /\/token$/;
    await names.confirmAll();
    keycloak.losesAnswers = null;
    await names.confirmAll();
    expect(service.logged.join('\n')).toContain('Maximum allowed refresh token reuse exceeded');
    expect(await names.works(key)).toBe(true);
    expect(await identity(subject)).toEqual({ has_token: false, waits: true, is_over: false });
    names.sessionOf(await names.signOn(username));
    await names.confirmAll();
    expect(await names.works(key)).toBe(true);
  });

  test('a lost answer has no effect if Keycloak accepts a refresh token a second time', async () => {
    await keycloak.manage('PUT', '/names', { refreshTokenMaxReuse: 1 });
    const { username, subject } = await newUser('names', '/platform/leads');
    names.sessionOf(await names.signOn(username));
    keycloak.losesAnswers = /\/token$/;
    await names.confirmAll();
    keycloak.losesAnswers = null;
    await names.confirmAll();
    await names.confirmAll();
    expect(await identity(subject)).toEqual({ has_token: true, waits: false, is_over: false });
    await keycloak.manage('PUT', '/names', { refreshTokenMaxReuse: 0 });
  });

  test.each([
    ['acme', 'Stale token'],
    ['names', 'Session not active'],
  ])(
    'a person whose session an administrator ends in the realm %s is suspended until the next sign-in',
    async (realm, why) => {
      const browsers = realm === 'acme' ? acme : names;
      const { username, user } = await newUser(realm, '/platform/leads');
      const headers = browsers.sessionOf(await browsers.signOn(username));
      const key = await browsers.newKeyOf(headers);
      await keycloak.manage('POST', `${user}/logout`);
      await browsers.confirmAll();
      await expect.poll(async () => [await browsers.works(key), await statusOf(headers)]).toEqual([false, 401]);
      expect(await suspensions()).toContain(`invalid_grant: ${why}`);
      browsers.sessionOf(await browsers.signOn(username));
      await expect.poll(() => browsers.works(key)).toBe(true);
    },
  );

  test('a person whose account is disabled is suspended, and gets the keys back by signing in when it is enabled', async () => {
    const { username, user } = await newUser('acme', '/platform');
    const key = await acme.newKeyOf(acme.sessionOf(await acme.signOn(username)));
    await keycloak.manage('PUT', user, { enabled: false });
    await acme.confirmAll();
    await expect.poll(() => acme.works(key)).toBe(false);
    expect(await suspensions()).toContain('invalid_grant: User disabled');
    await expect(acme.signOn(username)).rejects.toThrow(/disabled/);
    await keycloak.manage('PUT', user, { enabled: true });
    acme.sessionOf(await acme.signOn(username));
    await expect.poll(() => acme.works(key)).toBe(true);
  });

  test('sign-ins and checks continue after the realm begins to sign with a new key', async () => {
    const { username } = await newUser('acme', '/platform');
    const headers = acme.sessionOf(await acme.signOn(username));
    const keyOfRealm = async () =>
      (await keycloak.manage<{ active: { RS256: string } }>('GET', '/acme/keys')).active.RS256;
    const before = await keyOfRealm();
    await keycloak.manage('POST', '/acme/components', {
      name: 'new key',
      providerId: 'rsa-generated',
      providerType: 'org.keycloak.keys.KeyProvider',
      config: { priority: ['1000'], active: ['true'], enabled: ['true'] },
    });
    expect(await keyOfRealm()).not.toBe(before);
    await acme.confirmAll();
    expect(await acme.roleIn(headers)).toBe('member');
    expect(await acme.roleIn(acme.sessionOf(await acme.signOn(username)))).toBe('member');
  });

  test('a person without the role offline_access cannot get an offline token, and reads which setting to change', async () => {
    const { username, user } = await newUser('acme', '/platform');
    const held = await keycloak.manage<unknown[]>('GET', `${user}/role-mappings/realm`);
    await keycloak.manage('DELETE', `${user}/role-mappings/realm`, held);
    const { status, body } = await acme.signOn(username);
    expect([status, body.detail]).toEqual([503, expect.stringContaining('the role offline_access, or set `scopes`')]);
  });

  test('a wrong realm, another host and a wrong secret are faults that name the values', async () => {
    const faultOf = async (id: string) => {
      const { status, body } = await browsersAt(service, id, () => Promise.reject()).begin();
      return [status, body.detail];
    };
    const { url } = keycloak;
    const discovery = `${url}/realms/acne/.well-known/openid-configuration answers 404: correct \`issuer\``;
    expect(await faultOf('typo')).toEqual([503, expect.stringContaining(discovery)]);
    const other = url.replace('127.0.0.1', 'localhost');
    const both = `the file has the issuer ${other}/realms/acme, and the provider publishes ${url}/realms/acme`;
    expect(await faultOf('elsewhere')).toEqual([503, expect.stringContaining(both)]);
    const [client] = await keycloak.manage<{ id: string }[]>('GET', '/names/clients?clientId=runyard');
    const { username } = await newUser('names', '/platform/leads');
    await keycloak.manage('PUT', `/names/clients/${client?.id}`, { clientId: 'runyard', secret: 'another' });
    const { detail } = (await names.signOn(username)).body;
    expect(detail).toContain('compare client_id, client_secret and client_auth with the provider');
    await keycloak.manage('PUT', `/names/clients/${client?.id}`, { clientId: 'runyard', secret });
  });
});
