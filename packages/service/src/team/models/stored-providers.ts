/** Stores the access to providers that owners of the installation enter, and keeps it in the memory of each process. */
import type { Settings } from '@runyard/contract/settings/settings';
import type { PutModelProviderRequest } from '@runyard/contract/team/model-providers';
import { makeAddressRules } from '@runyard/system/address-rules';
import { systemNames } from '@runyard/system/names/resolver';
import type { Logger } from 'pino';
import { checkUrl } from '../../platform/check-url.ts';
import { defineSealedRows } from '../../platform/secrets/seal-again.ts';
import type { Vault } from '../../platform/secrets/vault.ts';
import type { Database, Queryable } from '../../platform/store/database/database.ts';
import {
  bytes,
  defineStatement,
  nullable,
  type RowOf,
  text,
  timestamp,
} from '../../platform/store/database/statement.ts';
import { recordChange } from '../access/audit/record.ts';
import type { Principal } from '../access/keys/principal.ts';
import {
  baseUrlOf,
  type ModelSettings,
  type ProviderName,
  type Providers,
  providerKinds,
  type Upstream,
  versionedUrl,
} from './providers.ts';

/** Channel on which the statements notify all processes that the access to a provider has changed. */
const providersChannel = 'runyard_model_providers';
/** The end of a shorter key would reveal too much of it. */
const shortestShown = 16;

const purposeOf = (provider: string): string => `model provider ${provider}`;

/** Names the columns with the encrypted keys of providers. */
export const sealedProviders = defineSealedRows({
  table: 'model_providers',
  id: 'name',
  sealed: 'sealed_key',
  purpose: purposeOf,
});

const columns = 'name, base_url, last_four, set_by, set_at';
const row = {
  name: text<ProviderName>(),
  base_url: nullable(text()),
  last_four: nullable(text()),
  set_by: text(),
  set_at: timestamp,
};

const readAll = defineStatement({
  name: 'read_model_providers',
  text: `SELECT ${columns}, sealed_key FROM model_providers ORDER BY name`,
  row: { ...row, sealed_key: nullable(bytes) },
});

const lockOne = defineStatement({
  name: 'lock_model_provider',
  text: `SELECT ${columns} FROM model_providers WHERE name = $1 FOR UPDATE`,
  row,
});

const put = defineStatement({
  name: 'put_model_provider',
  text: `
    WITH changed AS (
      INSERT INTO model_providers (name, base_url, vault_key_id, sealed_key, last_four, set_by) VALUES ($1, $2, $3, $4, $5, $6)
      ON CONFLICT (name) DO UPDATE SET base_url = excluded.base_url, vault_key_id = excluded.vault_key_id,
        sealed_key = excluded.sealed_key, last_four = excluded.last_four, set_by = excluded.set_by, set_at = clock_timestamp()
      RETURNING ${columns})
    SELECT ${columns}, pg_notify('${providersChannel}', '')::text AS notified FROM changed`,
  row: { ...row, notified: text() },
});

const remove = defineStatement({
  name: 'delete_model_provider',
  text: `
    WITH gone AS (DELETE FROM model_providers WHERE name = $1 RETURNING ${columns})
    SELECT ${columns}, pg_notify('${providersChannel}', '')::text AS notified FROM gone`,
  row: { ...row, notified: text() },
});

/** The stored facts about a provider, without its key. */
export type StoredProvider = RowOf<typeof lockOne>;

/** Contains the time, so that an entry of the audit log shows that a key was replaced by a key with the same end. */
const stateOf = ({ base_url, last_four, set_at }: StoredProvider) => ({ base_url, last_four, set_at });

/** Stores the access to a provider in the place of what was stored before. */
export async function putProvider(
  db: Database,
  vault: Vault,
  by: Principal,
  provider: ProviderName,
  { key, base_url: baseUrl }: PutModelProviderRequest,
): Promise<void> {
  await db.transaction(async (tx) => {
    const [before] = await tx.query(lockOne, [provider]);
    const [after] = await tx.query(put, [
      provider,
      baseUrl ?? null,
      key === undefined ? null : vault.keyId,
      key === undefined ? null : vault.seal(purposeOf(provider), key),
      key === undefined || key.length < shortestShown ? null : key.slice(-4),
      by.creator.uid,
    ]);
    if (!after) throw new Error('the access to the provider was not stored');
    const subject = { type: 'model_provider', uid: provider, name: providerKinds[provider].displayName };
    const change = before
      ? ({ action: 'model_provider.update', before: stateOf(before) } as const)
      : ({ action: 'model_provider.create' } as const);
    await recordChange(tx, by, { ...change, subject, after: stateOf(after) });
  });
}

/** Deletes what is stored about a provider. Returns false if nothing is stored. */
export async function deleteProvider(db: Database, by: Principal, provider: ProviderName): Promise<boolean> {
  return await db.transaction(async (tx) => {
    const [gone] = await tx.query(remove, [provider]);
    if (!gone) return false;
    const subject = { type: 'model_provider', uid: provider, name: providerKinds[provider].displayName };
    await recordChange(tx, by, {
      action: 'model_provider.delete',
      subject,
      before: stateOf(gone),
      endsAccess: true,
    });
    return true;
  });
}

/** A stored access, and the reason why this process does not use it. */
export interface KnownProvider extends StoredProvider {
  readonly problem?: string;
}

/** The stored access to providers, as this process knows it. */
export interface StoredProviders {
  /** The providers that can be used. The object stays the same until a row changes. */
  upstreams(): Providers;
  /** Every key that this process has read, so that it can be removed from texts of agents. The array stays the same until there is a new key. */
  keys(): readonly string[];
  list(): readonly KnownProvider[];
  /** Returns why requests must not be sent to the base URL; null if they may. */
  checkBaseUrl(url: string): string | null;
  /** Reads the rows again. */
  refresh(): Promise<void>;
  close(): void;
}

/** Reads the stored access, and reads it again when a process changes it. */
export async function openStoredProviders(
  deps: { readonly db: Database; readonly vault: Vault; readonly log: Pick<Logger, 'warn'> },
  settings: ModelSettings & Pick<Settings, 'RUNYARD_ALLOW_PRIVATE_NETWORKS'>,
): Promise<StoredProviders> {
  const { db, vault, log } = deps;
  const networks = settings.RUNYARD_ALLOW_PRIVATE_NETWORKS;
  const check = { rules: makeAddressRules(networks), resolve: systemNames.resolve };
  const checkBaseUrl = (url: string) => checkUrl(url, check.rules, networks.length > 0)?.message ?? null;
  let keys: readonly string[] = [];
  let known: readonly KnownProvider[] = [];
  let upstreams: Providers = {};
  let seen = '';
  let reading = Promise.resolve();

  const take = (rows: readonly RowOf<typeof readAll>[]): void => {
    const now = JSON.stringify(rows);
    // A key that could not be decrypted is tried again, because the vault may have the new secrets key now.
    if (now === seen && known.every(({ problem }) => problem === undefined)) return;
    seen = now;
    const usable: Partial<Record<ProviderName, Upstream>> = {};
    known = rows.map(({ sealed_key: sealed, ...stored }): KnownProvider => {
      const kind = providerKinds[stored.name];
      const base = stored.base_url ?? baseUrlOf(settings, kind);
      const fault = stored.base_url === null ? null : checkBaseUrl(stored.base_url);
      if (base === undefined || fault !== null) return { ...stored, problem: `The base URL ${fault ?? 'is missing'}.` };
      const key = sealed === null ? undefined : opened(stored.name, sealed);
      if (key === null)
        return { ...stored, problem: 'The secrets key of this service process does not decrypt the key.' };
      if (key !== undefined && !keys.includes(key)) keys = [...keys, key];
      usable[stored.name] = {
        baseUrl: versionedUrl(kind, base),
        ...(key === undefined ? {} : { key }),
        ...(stored.base_url === null ? {} : { check }),
      };
      return stored;
    });
    upstreams = usable;
  };
  const opened = (provider: ProviderName, sealed: Buffer): string | null => {
    try {
      return vault.open(purposeOf(provider), sealed);
    } catch {
      return null;
    }
  };
  const read = async (): Promise<void> => take(await readProviders(db));
  /** Reads one after the other, so that an older answer never replaces a newer one. */
  const refresh = (): Promise<void> => {
    reading = reading.catch(() => undefined).then(read);
    return reading;
  };
  const onNotice = () =>
    void refresh().catch((error: unknown) =>
      log.warn({ err: error }, 'reading the providers of models failed; the next round tries again'),
    );
  const stopListening = await db.listen(providersChannel, onNotice, onNotice);
  await refresh();
  return {
    upstreams: () => upstreams,
    keys: () => keys,
    list: () => known,
    checkBaseUrl,
    refresh,
    close: stopListening,
  };
}

const readProviders = async (db: Queryable): Promise<RowOf<typeof readAll>[]> => await db.query(readAll);
