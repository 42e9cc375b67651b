import path from 'node:path';
import type { Settings } from '@runyard/contract/settings/settings';
import type { Logger } from 'pino';
import type { Domain } from '../../platform/domain.ts';
import { sealedServerSecrets } from '../../platform/secrets/config-seal.ts';
import { forgetEarlierKeys } from '../../platform/secrets/rotate-key.ts';
import { sealAgain } from '../../platform/secrets/seal-again.ts';
import { earlierSigningKey } from '../../platform/secrets/signer.ts';
import type { Vault } from '../../platform/secrets/vault.ts';
import type { Database } from '../../platform/store/database/database.ts';
import { type FaultOfTeamSecret, secretRoutes } from './routes.ts';
import { deleteRunSecrets } from './run-secrets.ts';
import { sealedRunSecrets, sealedSecrets } from './sealed-rows.ts';

interface SecretDeps {
  readonly db: Database;
  readonly log: Logger;
  readonly vault: Vault;
  readonly settings: Pick<Settings, 'RUNYARD_DATA_DIR' | 'RUNYARD_SECRETS_KEY'>;
}

export function storedSecretsDomain(deps: SecretDeps, faultOfTeamSecret: FaultOfTeamSecret): Domain {
  const { db, log, vault } = deps;
  return {
    name: 'secrets',
    routes: () => secretRoutes(deps, faultOfTeamSecret),
    open: async () => {
      const [unreadable] = await db.query(sealedSecrets.countOthers, [vault.keyIds]);
      if (unreadable && unreadable.count > 0)
        log.warn(
          { secrets: unreadable.count },
          'stored secrets were encrypted with a key that is missing: restore the right secrets-key (or RUNYARD_SECRETS_KEY) and restart, or set them again',
        );
    },
    retention: { deleteRunDetail: deleteRunSecrets },
    sealAgain: async () => {
      let left = 0;
      for (const rows of [sealedSecrets, sealedRunSecrets]) left += await sealAgain(db, vault, rows);
      return left;
    },
  };
}

/**
 * Handles changes of the vault's keys. Every service process reads the keys again, and encrypts the rows of all domains with the first key.
 * When no row needs an earlier key any more, this key is removed from the file.
 */
export function vaultDomain({ db, log, vault, settings }: SecretDeps, domains: readonly Domain[]): Domain {
  const follow = async () => {
    const before = vault.keyId;
    await vault.refresh();
    if (vault.keyId !== before) log.info({ key_id: vault.keyId }, 'the key that seals secrets has changed');
    if (vault.keyIds.length === 1) return;
    let left = await sealAgain(db, vault, sealedServerSecrets);
    for (const domain of domains) left += (await domain.sealAgain?.()) ?? 0;
    if (left > 0 || settings.RUNYARD_SECRETS_KEY !== undefined) return;
    if (await forgetEarlierKeys(path.resolve(settings.RUNYARD_DATA_DIR), new Date()))
      log.info({ key_id: vault.keyId }, 'earlier keys of secrets are removed, because no value is encrypted with them');
  };
  return {
    name: 'vault',
    loops: async () => [{ name: 'sealing secrets again', everyMs: 3_000, work: follow }],
    retention: { rows: [earlierSigningKey] },
  };
}
