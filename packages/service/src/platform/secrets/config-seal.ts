/**
 * Encrypts single values inside of stored configurations. Equal values of one purpose have equal results, so that a configuration can be
 * compared with an earlier one. The key is in the database, encrypted with the key of the vault, so a rotation of that key changes only
 * this one row.
 */
import { createCipheriv, createDecipheriv, createHmac, randomBytes } from 'node:crypto';
import type { Queryable } from '../store/database/database.ts';
import { bytes, defineStatement } from '../store/database/statement.ts';
import { defineSealedRows } from './seal-again.ts';
import type { Vault } from './vault.ts';

export interface LoadedConfigSeal {
  /** Returns the text that a configuration has in place of the value. Only the same `purpose` can decrypt it. */
  seal(purpose: string, value: string): string;
  /** Returns the value; null if the text was made for another purpose or with another key, or was changed. */
  open(purpose: string, sealed: string): string | null;
}

/** The seal of an installation. Its key is created when the first value is encrypted. */
export interface ConfigSeal {
  load(): Promise<LoadedConfigSeal>;
}

const keyName = 'config-seal';
const purposeOfKey = (name: string): string => `server secret ${name}`;

/** The encrypted keys of this folder. */
export const sealedServerSecrets = defineSealedRows({
  table: 'server_secrets',
  id: 'name',
  sealed: 'value',
  purpose: purposeOfKey,
});

const insertKey = defineStatement({
  name: 'insert_config_seal',
  text: 'INSERT INTO server_secrets (name, value, vault_key_id) VALUES ($1, $2, $3) ON CONFLICT (name) DO NOTHING',
  row: {},
});

const readKey = defineStatement({
  name: 'read_config_seal',
  text: 'SELECT value FROM server_secrets WHERE name = $1',
  row: { value: bytes },
});

const prefix = 'sealed:';
/** Returns whether a value of a configuration has the form of an encrypted value. */
export const isSealedValue = (value: string): boolean => value.startsWith(prefix);

/** Replaces a key that no key of the vault ($4) decrypts, because the operator has accepted the loss of the earlier secrets key. */
const replaceKey = defineStatement({
  name: 'replace_config_seal',
  text: 'UPDATE server_secrets SET value = $2, vault_key_id = $3 WHERE name = $1 AND vault_key_id <> ALL($4::text[])',
  row: {},
});

/** Returns the seal of this installation. */
export function openConfigSeal(db: Queryable, vault: Vault): ConfigSeal {
  let loaded: Promise<LoadedConfigSeal> | undefined;
  const load = async () => {
    const fresh = vault.seal(purposeOfKey(keyName), randomBytes(32).toString('base64'));
    await db.query(insertKey, [keyName, fresh, vault.keyId]);
    await db.query(replaceKey, [keyName, fresh, vault.keyId, vault.keyIds]);
    const [row] = await db.query(readKey, [keyName]);
    if (!row) throw new Error('the key of sealed configurations is not in server_secrets');
    return makeSeal(Buffer.from(vault.open(purposeOfKey(keyName), row.value), 'base64'));
  };
  return {
    load: () => {
      loaded ??= load().catch((error: unknown) => {
        loaded = undefined;
        throw error;
      });
      return loaded;
    },
  };
}

/** Makes a seal with a key of 32 bytes. */
function makeSeal(key: Buffer): LoadedConfigSeal {
  const keyOf = (use: string) => createHmac('sha256', key).update(use).digest();
  const [cipherKey, nonceKey] = [keyOf('encrypt'), keyOf('nonce')];
  return {
    seal: (purpose, value) => {
      // The nonce depends on the text, as in RFC 5297. So a nonce is used again only for the same text.
      const nonce = createHmac('sha256', nonceKey)
        .update(JSON.stringify([purpose, value]))
        .digest()
        .subarray(0, 12);
      const cipher = createCipheriv('aes-256-gcm', cipherKey, nonce).setAAD(Buffer.from(purpose));
      const ciphertext = Buffer.concat([cipher.update(value, 'utf8'), cipher.final()]);
      return `${prefix}${Buffer.concat([nonce, cipher.getAuthTag(), ciphertext]).toString('base64url')}`;
    },
    open: (purpose, sealed) => {
      const all = Buffer.from(sealed.slice(prefix.length), 'base64url');
      if (!isSealedValue(sealed) || all.length < 28) return null;
      const decipher = createDecipheriv('aes-256-gcm', cipherKey, all.subarray(0, 12), { authTagLength: 16 })
        .setAAD(Buffer.from(purpose))
        .setAuthTag(all.subarray(12, 28));
      try {
        return decipher.update(all.subarray(28), undefined, 'utf8') + decipher.final('utf8');
      } catch {
        return null;
      }
    },
  };
}
