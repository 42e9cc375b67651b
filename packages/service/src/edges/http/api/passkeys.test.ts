import type { Session } from '@runyard/contract/team/browser-sessions';
import type { ApiKey } from '@runyard/contract/team/keys';
import type { Passkey } from '@runyard/contract/team/passkeys';
import { describe, expect, test } from 'vitest';
import type { z } from 'zod';
import { newBrowserSession, pageHeaders } from '../../../../test/browser-session.ts';
import {
  type FakeAuthenticator,
  type FakeQuestion,
  makeFakeAuthenticator,
  type Wrong,
} from '../../../../test/fake-authenticator.ts';
import { invite, newPerson, type Person, teamUidOf } from '../../../../test/people.ts';
import { openTestService, startTestService, type TestAnswer } from '../../../../test/service.ts';

const service = await openTestService();
const { db } = service.deps;
const team = await teamUidOf(service);
/** Passkeys belong to localhost, because the base URL of the service has a loopback address. */
const origin = service.baseUrl.replace('127.0.0.1', 'localhost');
const signInPath = `${origin}/api/v1/browser-sessions`;

interface Asked {
  readonly origin: string;
  readonly options: FakeQuestion;
}

const ask = async (
  path: string,
  more: { key?: string | null; headers?: Record<string, string>; body?: object } = {},
) => {
  const { status, body, text } = await service.request<Asked>('POST', path, { key: null, ...more });
  if (status !== 200) throw new Error(text);
  return body.options;
};
const askSignIn = () => ask('/passkeys/sign-in-options');
const add = async (key: string, authenticator: FakeAuthenticator, wrong: Wrong = {}, name = 'Laptop') => {
  const passkey = authenticator.create(await ask('/passkeys/options', { key }), wrong);
  return await service.request<Passkey>('POST', '/passkeys', { key, body: { name, passkey } });
};
const signInWith = async (passkey: unknown): Promise<TestAnswer<{ uid: string; display_name: string }>> =>
  await service.request('POST', signInPath, { key: null, body: { passkey }, headers: { origin } });
const sessionOf = async (answer: TestAnswer): Promise<TestAnswer<z.infer<typeof Session>>> =>
  await service.request('GET', '/session', { key: null, headers: pageOf(answer) });
const pageOf = (answer: TestAnswer) => ({ ...pageHeaders(service, answer), origin: service.baseUrl });
const list = async (key: string) => (await service.ok<{ passkeys: Passkey[] }>('GET', '/passkeys', { key })).passkeys;

/** A person with a passkey. */
async function newHolder(): Promise<Person & { readonly authenticator: FakeAuthenticator; readonly passkey: Passkey }> {
  const person = await newPerson(service, team, 'member');
  const authenticator = makeFakeAuthenticator(origin);
  const added = await add(person.key, authenticator);
  expect(added.status, added.text).toBe(201);
  return { ...person, authenticator, passkey: added.body };
}

describe('a passkey', () => {
  test('is added with a key, signs its person in, and is listed with its use', async () => {
    const { uid, key, authenticator, passkey } = await newHolder();
    expect(passkey).toEqual({
      id: passkey.id,
      name: 'Laptop',
      is_synced: false,
      created_at: expect.stringMatching(/Z$/),
    });
    const answer = await signInWith(authenticator.use(await askSignIn()));
    expect(answer.status, answer.text).toBe(200);
    const session = await sessionOf(answer);
    expect(session.body).toMatchObject({ kind: 'session', user: { uid }, teams: [{ uid: team, role: 'member' }] });
    expect(await list(key)).toMatchObject([{ id: passkey.id, last_used_at: expect.stringMatching(/Z$/) }]);
    const own = await service.request<{ passkeys: Passkey[] }>('GET', '/passkeys', {
      key: null,
      headers: pageHeaders(service, answer),
    });
    expect(own.body.passkeys[0]?.is_current).toBe(true);
    const keys = await service.request<{ keys: ApiKey[] }>('GET', '/keys', { key });
    expect(keys.body.keys.find((each) => each.uid === answer.body.uid)).toMatchObject({ is_session: true });
  });

  test('is renamed and deleted by its person, and its sessions end at once', async () => {
    const { key, authenticator, passkey } = await newHolder();
    const renamed = await service.request('PATCH', `/passkeys/${passkey.id}`, { key, body: { name: 'Old laptop' } });
    expect(renamed.body).toMatchObject({ name: 'Old laptop' });
    const session = await signInWith(authenticator.use(await askSignIn()));
    expect((await sessionOf(session)).status).toBe(200);
    expect((await service.request('DELETE', `/passkeys/${passkey.id}`, { key })).status).toBe(200);
    await expect.poll(async () => (await sessionOf(session)).status).toBe(401);
    expect((await signInWith(authenticator.use(await askSignIn()))).status).toBe(403);
    expect(await list(key)).toEqual([]);
  });

  test('is not deleted if its person could not sign in again', async () => {
    const authenticator = makeFakeAuthenticator(origin);
    const joined = await join(await invite(service, team, 'member'), authenticator);
    const headers = pageHeaders(service, joined);
    const [own] = (await service.ok<{ passkeys: Passkey[] }>('GET', '/passkeys', { key: null, headers })).passkeys;
    const remove = () => service.request('DELETE', `/passkeys/${own?.id}`, { key: null, headers });
    const refused = await remove();
    expect([refused.status, refused.text]).toEqual([409, expect.stringContaining('add another passkey')]);
    const second = makeFakeAuthenticator(origin);
    const passkey = second.create(await ask('/passkeys/options', { key: null, headers }));
    await service.request('POST', '/passkeys', { key: null, headers, body: { name: 'Phone', passkey } });
    expect((await remove()).status).toBe(200);
  });

  test('of another person is neither seen, nor renamed, nor deleted, not even by an owner', async () => {
    const { key, authenticator, passkey } = await newHolder();
    const other = await newPerson(service, team, 'member');
    for (const stranger of [other.key, service.key, service.otherKey]) {
      expect(await list(stranger)).not.toContainEqual(expect.objectContaining({ id: passkey.id }));
      await service.problem(404, 'DELETE', `/passkeys/${passkey.id}`, { key: stranger });
      await service.problem(404, 'PATCH', `/passkeys/${passkey.id}`, { key: stranger, body: { name: 'Mine' } });
    }
    expect(await list(key)).toHaveLength(1);
    expect((await signInWith(authenticator.use(await askSignIn()))).status).toBe(200);
  });

  test('is not added for agents, for run tokens, or by a session after its first hour', async () => {
    const { runToken } = await service.startExecution();
    const agent = await service.newKey({ kind: 'agent' });
    const headers = await newBrowserSession(service);
    await db.query(
      `UPDATE api_keys SET created_at = now() - interval '61 minutes', expires_at = now() + interval '1 hour' WHERE minted_by IS NOT NULL`,
    );
    await service.problem(403, 'POST', '/passkeys/options', { key: agent });
    await service.problem(401, 'POST', '/passkeys/options', { key: runToken });
    await service.problem(403, 'POST', '/passkeys/options', { key: null, headers });
  });

  test('is one of at most 20 of a person', async () => {
    const { key } = await newHolder();
    const early = makeFakeAuthenticator(origin).create(await ask('/passkeys/options', { key }));
    for (let each = 1; each < 20; each++) expect((await add(key, makeFakeAuthenticator(origin))).status).toBe(201);
    await service.problem(409, 'POST', '/passkeys/options', { key });
    await service.problem(409, 'POST', '/passkeys', { key, body: { name: 'Late', passkey: early } });
  });
});

const join = async (invitation: string, authenticator: FakeAuthenticator, wrong: Wrong = {}, asked = invitation) => {
  const person = { key: asked, display_name: 'Ada' };
  const passkey = authenticator.create(await ask('/team-invitations/passkey-options', { body: person }), wrong);
  return await service.request<{ display_name: string }>('POST', signInPath, {
    key: null,
    headers: { origin },
    body: { invitation: { ...person, key: invitation, name: 'Phone', passkey } },
  });
};

describe('an invitation with a passkey', () => {
  test('makes a new person who is signed in, and signs in with the passkey later', async () => {
    const authenticator = makeFakeAuthenticator(origin);
    const joined = await join(await invite(service, team, 'viewer'), authenticator);
    expect([joined.status, joined.body.display_name]).toEqual([200, 'Ada']);
    const session = await sessionOf(joined);
    expect(session.body).toMatchObject({ user: { display_name: 'Ada' }, teams: [{ uid: team, role: 'viewer' }] });
    const again = await sessionOf(await signInWith(authenticator.use(await askSignIn())));
    expect(again.body.user.uid).toBe(session.body.user.uid);
  });

  test('works once, also for people at the same time', async () => {
    const invitation = await invite(service, team, 'member');
    const people = [1, 2, 3].map(() => makeFakeAuthenticator(origin));
    const passkeys = await Promise.all(
      people.map(async (each) =>
        each.create(await ask('/team-invitations/passkey-options', { body: { key: invitation, display_name: 'Eve' } })),
      ),
    );
    const answers = await Promise.all(
      passkeys.map((passkey) =>
        service.request('POST', signInPath, {
          key: null,
          headers: { origin },
          body: { invitation: { key: invitation, display_name: 'Eve', name: 'P', passkey } },
        }),
      ),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 403, 403]);
    await service.problem(403, 'POST', '/team-invitations/passkey-options', {
      key: null,
      body: { key: invitation, display_name: 'Eve' },
    });
  });

  test('is not used by a question that was asked for another invitation, or by a passkey that was not verified', async () => {
    const [first, second] = [await invite(service, team, 'member'), await invite(service, team, 'member')];
    expect((await join(second, makeFakeAuthenticator(origin), {}, first)).status).toBe(403);
    expect((await join(second, makeFakeAuthenticator(origin), { isVerified: false })).status).toBe(403);
    expect((await join(second, makeFakeAuthenticator(origin), { origin: 'https://evil.example' })).status).toBe(403);
    expect((await join(second, makeFakeAuthenticator(origin))).status).toBe(200);
  });
});

describe('the answer of a passkey', () => {
  const attacks: Readonly<Record<string, Wrong>> = {
    'from a page of another origin': { origin: 'https://evil.example' },
    'from another port of this host': { origin: 'http://localhost:1' },
    'for another host': { rpId: 'evil.example' },
    'without the verification of the person': { isVerified: false },
    'with a question that the service did not ask': { challenge: 'eyJhIjoxfQ' },
    'with the handle of another person': { userHandle: Buffer.from('someone else').toString('base64url') },
    'that belongs to a registration': { type: 'webauthn.create' },
  };
  test.each(Object.entries(attacks))('%s is refused', async (_, wrong) => {
    const { authenticator } = await newHolder();
    const refused = await signInWith(authenticator.use(await askSignIn(), wrong));
    expect([refused.status, refused.headers.get('set-cookie')]).toEqual([403, null]);
    expect((await signInWith(authenticator.use(await askSignIn()))).status).toBe(200);
  });

  test('is refused when it is sent again, also at the same time', async () => {
    const { authenticator } = await newHolder();
    const answer = authenticator.use(await askSignIn());
    const statuses = await Promise.all([1, 2, 3, 4].map(async () => (await signInWith(answer)).status));
    expect(statuses.sort()).toEqual([200, 403, 403, 403]);
    // An authenticator without a signature counter could sign the same question twice.
    const question = await askSignIn();
    const uncounted = await newHolder();
    await db.query('UPDATE passkeys SET counter = 0 WHERE id = $1', [uncounted.passkey.id]);
    expect((await signInWith(uncounted.authenticator.use(question, { counter: 0 }))).status).toBe(200);
    expect((await signInWith(uncounted.authenticator.use(question, { counter: 0 }))).status).toBe(403);
    expect((await signInWith(uncounted.authenticator.use(await askSignIn(), { counter: 0 }))).status).toBe(200);
  });

  test('is refused if its counter is not above the last one, because the passkey may be copied', async () => {
    const { authenticator } = await newHolder();
    expect((await signInWith(authenticator.use(await askSignIn(), { counter: 7 }))).status).toBe(200);
    for (const counter of [7, 6, 0])
      expect((await signInWith(authenticator.use(await askSignIn(), { counter }))).status).toBe(403);
    const answers = await Promise.all(
      [8, 8, 8].map(async (counter) => authenticator.use(await askSignIn(), { counter })),
    );
    const statuses = await Promise.all(answers.map(async (answer) => (await signInWith(answer)).status));
    expect(statuses.sort()).toEqual([200, 403, 403]);
  });

  test('is refused if another passkey signed it, or if its question is five minutes old', async () => {
    const { authenticator } = await newHolder();
    const other = await newHolder();
    const foreign = other.authenticator.use(await askSignIn());
    const id = authenticator.credentialId;
    expect((await signInWith({ ...foreign, id, rawId: id })).status).toBe(403);
    const now = Date.now;
    const question = await askSignIn();
    Date.now = () => now() + 5 * 60_000 + 1;
    try {
      expect((await signInWith(authenticator.use(question))).status).toBe(403);
    } finally {
      Date.now = now;
    }
  });

  test('does not sign in a person without a membership, or a person whom the identity provider does not confirm', async () => {
    const { uid, authenticator } = await newHolder();
    const [{ id: userId = '' } = {}] = await db.query<{ id: string }>('SELECT id FROM users WHERE uid = $1', [uid]);
    const identity = [userId, uid];
    await db.query(
      `INSERT INTO sign_on_identities (id, issuer, subject, user_id, vault_key_id, confirmed_until) VALUES ($1, 'i', $2, $1, '', now())`,
      identity,
    );
    expect((await signInWith(authenticator.use(await askSignIn()))).status).toBe(403);
    await db.query('DELETE FROM sign_on_identities WHERE user_id = $1', [userId]);
    const session = await signInWith(authenticator.use(await askSignIn()));
    expect(session.status).toBe(200);
    await service.request('DELETE', `/teams/${team}/members/${uid}`);
    await expect.poll(async () => (await sessionOf(session)).status).toBe(401);
    expect((await signInWith(authenticator.use(await askSignIn()))).status).toBe(403);
  });
});

test('an administrator who invites a person again after the loss of a passkey gets no access to the other teams of the person', async () => {
  const { uid, key, authenticator } = await newHolder();
  const otherTeam = await teamUidOf(service, service.otherKey);
  const invitation = await invite(service, otherTeam, 'member', service.otherKey);
  expect((await service.request('POST', '/team-invitations/join', { key, body: { key: invitation } })).status).toBe(
    200,
  );
  await service.request('DELETE', `/teams/${team}/members/${uid}`);
  const recovered = await sessionOf(await join(await invite(service, team, 'member'), makeFakeAuthenticator(origin)));
  expect(recovered.body.user.uid).not.toBe(uid);
  expect(recovered.body.teams.map((each) => each.uid)).toEqual([team]);
  const found = await sessionOf(await signInWith(authenticator.use(await askSignIn())));
  expect([found.body.user.uid, found.body.teams.map((each) => each.uid)]).toEqual([uid, [otherTeam]]);
});

describe('the registration of a passkey', () => {
  test('is refused for the question of another person, key or use, and for a passkey that is known', async () => {
    const [ada, eve] = [await newPerson(service, team, 'member'), await newHolder()];
    const mine = makeFakeAuthenticator(origin).create(await ask('/passkeys/options', { key: ada.key }));
    const send = (key: string, passkey: unknown) =>
      service.request('POST', '/passkeys', { key, body: { name: 'P', passkey } });
    expect((await send(eve.key, mine)).status).toBe(403);
    const ofSignIn = makeFakeAuthenticator(origin).create({ ...(await askSignIn()), rp: { id: 'localhost' } });
    expect((await send(ada.key, ofSignIn)).status).toBe(403);
    expect((await add(ada.key, eve.authenticator)).status).toBe(403);
    expect((await send(ada.key, mine)).status).toBe(201);
    expect((await send(ada.key, mine)).status).toBe(403);
  });

  test('with certificates is refused, so that no request is sent to addresses in them', async () => {
    const { key } = await newPerson(service, team, 'member');
    const statement = new Map<string, unknown>([
      ['alg', -7],
      ['sig', new Uint8Array(64)],
      ['x5c', [new Uint8Array(300)]],
    ]);
    for (const format of ['packed', 'fido-u2f', 'android-key', 'tpm', 'apple'])
      expect((await add(key, makeFakeAuthenticator(origin), { attestation: [format, statement] })).status).toBe(403);
    expect(service.logged.join('\n')).toContain('the attestation has a certificate');
  });

  test('is refused as a whole if a part of it is not CBOR, base64url or JSON', async () => {
    const { key } = await newPerson(service, team, 'member');
    const right = makeFakeAuthenticator(origin).create(await ask('/passkeys/options', { key }));
    const send = (response: object) =>
      service.request('POST', '/passkeys', {
        key,
        body: { name: 'P', passkey: { ...right, response: { ...right.response, ...response } } },
      });
    for (const attestationObject of ['AA', '_____w', 'v7-_v7-_', 'gICAgICA'.repeat(2000)])
      expect((await send({ attestationObject })).status).toBe(403);
    expect((await send({ clientDataJSON: 'AA' })).status).toBe(403);
    expect((await send({ attestationObject: 'not base64url!' })).status).toBe(400);
    expect((await send({ attestationObject: 'A'.repeat(20_000) })).status).toBe(400);
  });
});

test('is refused by a service whose address is an IP address, with what to do', async () => {
  const other = await startTestService({ env: { RUNYARD_BASE_URL: 'http://10.0.0.5:4180' } });
  try {
    const { detail } = await other.problem(403, 'POST', '/passkeys/sign-in-options', { key: null });
    expect(detail).toContain('set RUNYARD_BASE_URL to an https URL with a host name');
  } finally {
    await other.close();
  }
});

test('the sign-in, the addition and the deletion of a passkey have entries in the audit log', async () => {
  const { key, authenticator, passkey } = await newHolder();
  const session = await signInWith(authenticator.use(await askSignIn()));
  await service.request('DELETE', `/passkeys/${passkey.id}`, { key });
  const entries = await db.query<{ action: string; after: unknown }>(
    `SELECT action, after FROM audit_entries WHERE subject_uid IN ($1, $2) ORDER BY occurred_at, id`,
    [passkey.id, session.body.uid],
  );
  expect(entries).toEqual([
    { action: 'passkey.create', after: { is_synced: false } },
    { action: 'browser_session.create', after: { passkey: passkey.id } },
    { action: 'passkey.delete', after: null },
  ]);
});
