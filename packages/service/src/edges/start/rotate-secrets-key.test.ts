import { randomBytes, randomUUIDv7 } from 'node:crypto';
import { mkdtemp, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeEach, expect, it } from 'vitest';
import { openTestService } from '../../../test/service.ts';
import { forgetEarlierKeys, rotateKey } from '../../platform/secrets/rotate-key.ts';
import { makeVault, openVault, type Vault } from '../../platform/secrets/vault.ts';
import { subscriptionsDomain } from '../../runs/subscriptions/domain.ts';
import { createSubscription, openSecret, rotateSecret } from '../../runs/subscriptions/subscriptions.ts';
import type { Principal } from '../../team/access/keys/principal.ts';
import { codeHostsDomain } from '../../team/code-hosts/domain.ts';
import { createCodeHostCredential, sealPurpose } from '../../team/code-hosts/records.ts';
import { mcpDomain } from '../../team/mcp/domain.ts';
import { openValues } from '../../team/mcp/sealed-values.ts';
import { createMcpServer } from '../../team/mcp/servers.ts';
import { storedSecretsDomain, vaultDomain } from '../../team/stored-secrets/domain.ts';
import { findUsableSecrets } from '../../team/stored-secrets/find-usable.ts';
import { keepRunSecrets, readRunSecrets } from '../../team/stored-secrets/run-secrets.ts';
import { putSecret } from '../../team/stored-secrets/stored-secrets.ts';
import { createFactory } from '../../triggers/factories/factories.ts';
import { webhooksDomain } from '../../triggers/webhooks/domain.ts';
import { openWebhookSecret } from '../../triggers/webhooks/ingest/secrets.ts';
import { createWebhook } from '../../triggers/webhooks/webhooks.ts';

const service = await openTestService();
const { deps, teamId } = service;
const { db } = deps;
const [admin] = await db.query<{ uid: string }>('SELECT uid FROM users ORDER BY number LIMIT 1');
const caller: Principal = {
  keyId: randomUUIDv7(),
  kind: 'user',
  teamId,
  teamUid: '',
  creator: { kind: 'user', uid: admin?.uid ?? '', displayName: 'Administrator' },
  role: 'admin',
  isOperator: false,
  from: null,
};

let folder: string;
let vault: Vault;
const folders: string[] = [];
beforeEach(async () => {
  await db.query('DELETE FROM stored_secrets');
  for (const table of ['event_subscriptions', 'mcp_servers', 'code_host_credentials', 'factories'])
    await db.query(`DELETE FROM ${table}`);
  await db.query('DELETE FROM run_secrets');
  folder = await mkdtemp(path.join(tmpdir(), 'runyard-rotation-'));
  folders.push(folder);
  vault = await openVault(folder, undefined);
});
afterAll(() => Promise.all(folders.map((each) => rm(each, { recursive: true, force: true }))));

const file = () => path.join(folder, 'secrets-key');
const keys = async () => (await readFile(file(), 'utf8')).trim().split('\n');
const put = async (name: string, value: string, by = vault) => {
  const stored = await db.transaction((tx) => putSecret(tx, by, caller, { name, value, scope: 'team' }));
  if (stored === 'too_many') throw new Error('too many');
};
const storedValue = async (name: string, by = vault) => {
  const found = await findUsableSecrets(
    db,
    by,
    { teamId, actor: caller.creator },
    { ofRun: [{ name }], ofEnvironment: [] },
  );
  return found.kind === 'ok' ? found.secrets[0]?.value : found.kind;
};
/** Runs one round of the loop that reads the keys again and encrypts all values with the first key. `by`: the vault of the process. */
async function follow(by: Vault): Promise<void> {
  const settings = { ...deps.settings, RUNYARD_DATA_DIR: folder };
  const own = { ...deps, vault: by, settings, findWaiting: async () => undefined };
  const loops = await vaultDomain(own, [
    storedSecretsDomain(own, async () => null),
    subscriptionsDomain(own, { github: () => Promise.reject(new Error('these tests deliver nothing')) }),
    ...[mcpDomain, codeHostsDomain, webhooksDomain].map((of) => of(own)),
  ]).loops?.();
  await loops?.[0]?.work(new AbortController().signal);
}
const keyIds = async () =>
  (
    await db.query<{ id: string }>(
      `SELECT vault_key_id AS id FROM stored_secrets UNION SELECT vault_key_id FROM run_secrets UNION SELECT vault_key_id FROM event_subscriptions
       UNION SELECT vault_key_id FROM mcp_servers UNION SELECT vault_key_id FROM code_host_credentials
       UNION SELECT vault_key_id FROM webhooks`,
    )
  ).map(({ id }) => id);

it('a rotation encrypts all values with the new key, also a value that a process without the new key stored with the old key meanwhile', async () => {
  const other = await openVault(folder, undefined);
  await put('A', 'value of A 12345');
  const runId = await service.newRun();
  const [copy] = await db.query<{ id: string }>(`SELECT id FROM stored_secrets WHERE name = 'A'`);
  const granted = { name: 'A', kind: 'granted' as const, value: 'value of A 12345' };
  await db.transaction((tx) => keepRunSecrets(tx, vault, runId, [granted], [copy?.id ?? '']));
  const made = await createSubscription(db, vault, teamId, {
    url: 'https://example.com/',
    events: ['run.created'],
    enabled: true,
  });
  if (made === 'too_many') throw new Error('too many');
  const signing = openSecret(vault, made);
  const server = await createMcpServer(db, vault, caller, {
    name: 'M',
    command: 'm',
    env: { TOKEN: 'value of M 12345' },
  });
  const request = { kind: 'token', scope: 'team', host: 'git.test', token: 'value of H 12345' } as const;
  const credential = await createCodeHostCredential(db, vault, caller, request);
  const webhook = await db.transaction(async (tx) => {
    const factory = await createFactory(tx, caller, { name: 'F' });
    if (typeof factory === 'string') throw new Error(factory);
    return await createWebhook(tx, vault, caller, factory.uid, { name: 'W', auth_mode: 'token', enabled: true });
  });
  if (typeof webhook === 'string' || 'kind' in webhook) throw new Error('the webhook was refused');
  const webhookUid = webhook.webhook.uid;
  const ofSenders = openWebhookSecret(vault, webhookUid, Buffer.from(webhook.sealedSecret ?? '', 'base64'));
  if (typeof server === 'string' || typeof credential === 'string') throw new Error('refused');

  const rotated = await rotateKey(folder);
  expect(rotated).toMatchObject({ kind: 'rotated', previousKeyId: vault.keyId });
  expect((await stat(file())).mode & 0o777).toBe(0o600);
  await follow(vault);
  expect(await keyIds()).toEqual([vault.keyId]);
  expect(rotated).toMatchObject({ keyId: vault.keyId });
  // Store a secret with a process that still uses the earlier key.
  await put('B', 'value of B 12345', other);
  expect(await storedValue('B')).toBe('value of B 12345');
  await follow(other);
  expect(await keyIds()).toEqual([vault.keyId]);
  for (const by of [vault, other]) {
    expect(await storedValue('A', by)).toBe('value of A 12345');
    expect(await readRunSecrets(db, by, runId)).toEqual([{ name: 'A', kind: 'granted', value: 'value of A 12345' }]);
  }
  const [row] = await db.query<{ sealed: Buffer }>('SELECT sealed_secret AS sealed FROM event_subscriptions');
  expect(openSecret(vault, { ...made, sealedSecret: row?.sealed.toString('base64') ?? '' })).toBe(signing);
  const [values] = await db.query<{ sealed: Buffer }>('SELECT sealed_values AS sealed FROM mcp_servers');
  const [token] = await db.query<{ sealed: Buffer }>('SELECT sealed_secret AS sealed FROM code_host_credentials');
  const only = makeVault(Buffer.from((await keys())[0] ?? '', 'base64'));
  expect(openValues(only, server.id, values?.sealed ?? Buffer.alloc(0))).toEqual({ TOKEN: 'value of M 12345' });
  expect(only.open(sealPurpose(credential.id), token?.sealed ?? Buffer.alloc(0))).toBe('value of H 12345');
  const [ofWebhook] = await db.query<{ sealed: Buffer }>('SELECT sealed_secret AS sealed FROM webhooks');
  expect(openWebhookSecret(only, webhookUid, ofWebhook?.sealed ?? Buffer.alloc(0))).toBe(ofSenders);
  // `made` is still encrypted with the earlier key. The service stores the answer to a create for a day in this form, so it must still
  // decrypt `made`.
  expect(openSecret(vault, made)).toBe(signing);
});

it('a rotation keeps the previous signing secret of a subscription whose secret is rotated meanwhile', async () => {
  const made = await createSubscription(db, vault, teamId, {
    url: 'https://example.com/',
    events: ['run.created'],
    enabled: true,
  });
  if (made === 'too_many') throw new Error('too many');
  await rotateKey(folder);
  await vault.refresh();
  await rotateSecret(db, vault, teamId, made.subscription.id);
  const [row] = await db.query<{ earlier: Buffer }>(
    'SELECT previous_sealed_secret AS earlier FROM event_subscriptions',
  );
  expect(openSecret(vault, { ...made, sealedSecret: row?.earlier.toString('base64') ?? '' })).toBe(
    openSecret(vault, made),
  );
});

it('a rotation loses no value if the process dies between two rows, or if the key changes several times', async () => {
  for (let n = 0; n < 5; n += 1) await put(`N${n}`, `value number ${n} of 5`);
  for (let round = 0; round < 3; round += 1) {
    await rotateKey(folder);
    await vault.refresh();
    // Each of the keys has encrypted some of the rows.
    await put(`N${round}`, `value number ${round} of 5`);
  }
  expect((await keyIds()).length).toBeGreaterThan(2);
  const fresh = await openVault(folder, undefined);
  for (let n = 0; n < 5; n += 1) expect(await storedValue(`N${n}`, fresh)).toBe(`value number ${n} of 5`);
  await follow(fresh);
  expect(await keyIds()).toEqual([fresh.keyId]);
});

it('a rotation does not overwrite a value that is set while rows are encrypted again', async () => {
  await put('A', 'the first value 1');
  await rotateKey(folder);
  await vault.refresh();
  await Promise.all([follow(vault), put('A', 'the second value 2')]);
  expect(await storedValue('A')).toBe('the second value 2');
});

it('a rotation removes earlier keys after a day, and only if no row needs them', async () => {
  await put('A', 'the first value 1');
  await rotateKey(folder);
  await follow(vault);
  expect(await keys()).toHaveLength(2);
  const longAgo = new Date(Date.now() - 26 * 60 * 60 * 1000);
  await utimes(file(), longAgo, longAgo);
  const lost = makeVault(randomBytes(32));
  await put('LOST', 'sealed with another key', lost);
  await follow(vault);
  expect(await keys()).toHaveLength(2);
  expect(await storedValue('LOST')).toBe('unreadable');
  await put('LOST', 'set again 12345');
  await follow(vault);
  expect(await keys()).toHaveLength(1);
  expect(await storedValue('A', await openVault(folder, undefined))).toBe('the first value 1');
  expect(await forgetEarlierKeys(folder, new Date())).toBe(false);
});

it('the service decrypts with every key of the setting, and encrypts with the first key', async () => {
  const [old, fresh] = [randomBytes(32).toString('base64'), randomBytes(32).toString('base64')];
  await put('A', 'the first value 1', await openVault(folder, old));
  const both = await openVault(folder, `${fresh},${old}`);
  expect(await storedValue('A', both)).toBe('the first value 1');
  await follow(both);
  expect(await storedValue('A', await openVault(folder, fresh))).toBe('the first value 1');
});

it('a rotation reports that there is no key if no value was encrypted, and refuses a broken key file', async () => {
  await rm(file());
  expect(await rotateKey(folder)).toMatchObject({ kind: 'no_file' });
  await writeFile(file(), 'broken\n');
  await expect(openVault(folder, undefined)).rejects.toThrow('32 bytes');
});
