import {
  type ApiKey,
  type CreateKeyResponse,
  CreateKeyResponse as CreateKeyResponseSchema,
  KeyLifetime,
  ListKeysResponse,
} from '@runyard/contract/team/keys';
import { describe, expect, test, vi } from 'vitest';
import { openTestService, startTestService, type TestService } from '../../../../test/service.ts';
import { openKeyDirectory } from '../../../team/access/keys/directory.ts';

const service = await openTestService();

const create = async (body: object, key?: string): Promise<CreateKeyResponse> =>
  CreateKeyResponseSchema.parse(await service.ok('POST', '/keys', { body, ...(key ? { key } : {}) }));
const listed = async (key?: string): Promise<ApiKey[]> =>
  ListKeysResponse.parse(await service.ok('GET', '/keys', key ? { key } : {})).keys;

describe('POST /keys', () => {
  test('returns the raw key once and stores only its hash', async () => {
    const created = await create({ name: 'CI', kind: 'personal', expires_in: '30d' });
    expect(created.key).toMatch(/^ryk_[\w-]{43}$/);
    expect((await service.request('GET', '/agent/runs', { key: created.key })).status).toBe(200);
    const days = (Date.parse(created.expires_at ?? '') - Date.parse(created.created_at)) / 86_400_000;
    expect(days).toBeCloseTo(30);
    const inList = (await listed()).find((key) => key.uid === created.uid);
    expect(inList).toMatchObject({ name: 'CI', prefix: created.key.slice(0, 8), last_four: created.key.slice(-4) });
    expect(JSON.stringify(inList)).not.toContain(created.key);
    const [dump] = await service.deps.db.query('SELECT json_agg(k)::text AS dump FROM api_keys k');
    expect(dump?.dump).not.toContain(created.key);
  });

  test.each(KeyLifetime.options)('ends the key after the chosen lifetime: %s', async (expires_in) => {
    const { created_at, expires_at } = await create({ name: expires_in, kind: 'personal', expires_in });
    const days = expires_at && Math.round((Date.parse(expires_at) - Date.parse(created_at)) / 86_400_000);
    expect(days).toBe(expires_in === 'never' ? undefined : Number(expires_in.slice(0, -1)));
  });

  test('creates agent keys that act as a service account', async () => {
    const created = await create({ name: 'Bot', kind: 'agent' });
    expect(created.expires_at).toBeUndefined();
    const id = await service.newRun({}, created.key);
    expect(await service.ok('GET', `/agent/runs/${id}`)).toMatchObject({
      creator: { type: 'service_account', uid: created.uid, display_name: 'Bot' },
    });
  });

  test.each([
    ['without a name', { kind: 'personal' }],
    ['of an unknown kind', { name: 'a', kind: 'root' }],
    ['with another lifetime', { name: 'a', kind: 'personal', expires_in: '2d' }],
    ['personal with agent_uid', { name: 'a', kind: 'personal', agent_uid: 'x' }],
  ])('answers 400 for one %s', async (_, body) => {
    await service.problem(400, 'POST', '/keys', { body });
  });

  test('answers 403 for a key of an agent identity that the team does not have', async () => {
    const body = { name: 'a', kind: 'agent', agent_uid: 'x' };
    expect((await service.problem(403, 'POST', '/keys', { body })).detail).toMatch(/^agent_uid: there is no such/);
  });

  test('answers 403 to agent keys, and to members who try to create agent keys', async () => {
    const agent = await service.newKey({ kind: 'agent' });
    const member = await service.newKey({ role: 'member' });
    await service.problem(403, 'POST', '/keys', { key: agent, body: { name: 'a', kind: 'personal' } });
    await service.problem(403, 'GET', '/keys', { key: agent });
    await service.problem(403, 'POST', '/keys', { key: member, body: { name: 'a', kind: 'agent' } });
    await create({ name: 'a', kind: 'personal' }, member);
  });
});

describe('a member', () => {
  test("sees and deletes only the member's own keys", async () => {
    const member = await service.newKey({ role: 'member' });
    const own = await create({ name: 'mine', kind: 'personal' }, member);
    const other = await create({ name: 'not mine', kind: 'personal' });
    const seen = await listed(member);
    expect(seen.map(({ name }) => name).sort()).toEqual(['A key', 'mine']);
    expect(new Set(seen.map(({ user_uid }) => user_uid)).size).toBe(1);
    expect(seen.filter(({ is_current }) => is_current).map(({ name }) => name)).toEqual(['A key']);
    await service.problem(404, 'DELETE', `/keys/${other.uid}`, { key: member });
    expect(await service.ok('DELETE', `/keys/${own.uid}`, { key: member })).toEqual({ success: true });
  });
});

describe('DELETE /keys/{uid}', () => {
  test('ends the key at once in all service processes', async () => {
    const created = await create({ name: 'short', kind: 'personal' });
    // The clock of this process's cache does not move, so no cache entry expires.
    const elsewhere = await openKeyDirectory(service.deps.db, service.deps.log, () => 0);
    expect(await elsewhere.authenticate(created.key)).not.toBeNull();
    expect((await service.request('GET', '/agent/runs', { key: created.key })).status).toBe(200);
    await service.request('DELETE', `/keys/${created.uid}`);
    await vi.waitFor(async () => expect(await elsewhere.authenticate(created.key)).toBeNull(), {
      timeout: 60_000,
      interval: 5,
    });
    await service.problem(401, 'GET', '/agent/runs', { key: created.key });
    elsewhere.close();
  });
});

describe('an administrator', () => {
  test("deletes the keys of members, but no key of an owner, such as the operator's", async () => {
    const [admin, owner, member] = [
      await service.newKey({ role: 'admin' }),
      await service.newKey({ role: 'owner' }),
      await service.newKey({ role: 'member' }),
    ];
    const uidOf = async (key: string) =>
      (await listed()).find(({ last_four }) => last_four === key.slice(-4))?.uid ?? 'none';
    const ofOwner = await service.problem(403, 'DELETE', `/keys/${await uidOf(owner)}`, { key: admin });
    expect(ofOwner.detail).toContain('role is above yours');
    await service.problem(403, 'DELETE', `/keys/${await uidOf(service.key)}`, { key: admin });
    expect((await service.request('DELETE', `/keys/${await uidOf(member)}`, { key: admin })).status).toBe(200);
    for (const key of [service.key, owner]) expect((await service.request('GET', '/keys', { key })).status).toBe(200);
  });
});

describe('the cache of keys', () => {
  test('stores the time of use at most once a minute', async () => {
    const created = await create({ name: 'used', kind: 'personal' });
    const usedAt = async () => (await listed()).find((key) => key.uid === created.uid)?.last_used_at;
    await service.request('GET', '/agent/runs', { key: created.key });
    const first = await vi.waitUntil(usedAt, { timeout: 60_000 });
    await service.request('GET', '/agent/runs', { key: created.key });
    const elsewhere = await openKeyDirectory(service.deps.db, service.deps.log);
    await elsewhere.authenticate(created.key);
    elsewhere.close();
    expect(await usedAt()).toBe(first);
  });

  test('refuses a cached key as soon as it expires', async () => {
    let now = Date.now();
    const { db, log } = service.deps;
    /** A database in which every key expires in two seconds. */
    const ending = {
      ...db,
      query: async (...args: Parameters<typeof db.query>) =>
        (await db.query(...args)).map((row) => ({ ...row, remaining_ms: 2_000 })),
    } as typeof db;
    const keys = await openKeyDirectory(ending, log, () => now);
    const key = await service.newKey({ expiresIn: '1 hour' });
    expect(await keys.authenticate(key)).not.toBeNull();
    now += 2_500;
    expect(await keys.authenticate(key)).toBeNull();
    keys.close();
  });

  test('caches a key for 5 seconds', async () => {
    let now = Date.now();
    let queries = 0;
    const { db } = service.deps;
    const counted = {
      ...db,
      query: (...args: Parameters<typeof db.query>) => {
        queries += 1;
        return db.query(...args);
      },
    } as typeof db;
    const keys = await openKeyDirectory(counted, service.deps.log, () => now);
    for (let i = 0; i < 5; i += 1) await keys.authenticate(service.key);
    // One query looks up the key, and one updates the time of the key's last use.
    expect(queries).toBe(2);
    now += 5_000;
    await keys.authenticate(service.key);
    expect(queries).toBe(3);
    keys.close();
  });
});

const uidOf = async (own: TestService, key: string): Promise<string> => {
  const { keys } = (await own.request<{ keys: ApiKey[] }>('GET', '/keys', { key })).body;
  return keys.find(({ is_current }) => is_current)?.uid ?? 'none';
};

describe("the operator's key", () => {
  test('is deleted only if an owner has another key that is not a session', async () => {
    const own = await startTestService();
    try {
      const uid = await uidOf(own, own.key);
      const refused = await own.problem(409, 'DELETE', `/keys/${uid}`);
      expect(refused).toMatchObject({ error_code: 'conflict' });
      expect(refused.detail).toContain('no owner of the team has another key');
      const owner = await own.newKey({ role: 'owner' });
      expect((await own.request('DELETE', `/keys/${uid}`, { key: owner })).status).toBe(200);
      expect((await own.request('GET', '/keys', { key: owner })).status).toBe(200);
    } finally {
      await own.close();
    }
  });
});

test('exactly one of two concurrent deletes of the last two keys of owners succeeds', async () => {
  const own = await startTestService();
  try {
    let last = own.key;
    for (let round = 0; round < 20; round += 1) {
      const keys = [last, await own.newKey({ role: 'owner' })];
      const uids = await Promise.all(keys.map(async (key) => await uidOf(own, key)));
      const answers = await Promise.all(
        keys.map(async (key, index) => await own.request('DELETE', `/keys/${uids[index]}`, { key })),
      );
      const statuses = answers.map(({ status }) => status);
      expect(statuses.toSorted(), `round ${round}`).toEqual([200, 409]);
      last = keys[statuses.indexOf(409)] ?? 'none';
    }
    // An expired key and a key of an administrator do not count, because nobody can manage the team with them.
    await own.newKey({ role: 'owner', expiresIn: '-1 minute' });
    await own.newKey({ role: 'admin' });
    const path = `/keys/${await uidOf(own, last)}`;
    await own.problem(409, 'DELETE', path, { key: last });
    // An owner who can sign in with an identity provider does not need a key.
    await own.deps.db.query(
      `INSERT INTO sign_on_identities (id, issuer, subject, user_id, vault_key_id, confirmed_until)
       SELECT gen_random_uuid(), 'https://id.example', 'one', user_id, 'none', now() + interval '1 hour'
       FROM api_keys WHERE id = $1`,
      [path.slice('/keys/'.length)],
    );
    expect((await own.request('DELETE', path, { key: last })).status).toBe(200);
  } finally {
    await own.close();
  }
});
