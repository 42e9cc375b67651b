import type { Environment, EnvironmentConfig } from '@runyard/contract/environments/environments';
import type { SecretReference } from '@runyard/contract/secrets/secrets';
import type { Fault } from '../../platform/fault.ts';
import type { Vault } from '../../platform/secrets/vault.ts';
import type { Database, Queryable } from '../../platform/store/database/database.ts';
import type { Principal } from '../access/keys/principal.ts';
import { lockEnvironment, type ReadEnvironmentRuns, readEnvironment, updateEnvironment } from './environments.ts';

/** Reasons why the caller may not give secrets to an environment. `invalid`: 400. `forbidden`: 403. */
export type RefusedSecrets =
  | { readonly kind: 'invalid'; readonly faults: readonly Fault[] }
  | { readonly kind: 'forbidden'; readonly detail: string };

export interface ReplaceDeps {
  readonly db: Database;
  readonly vault: Vault;
  readonly lastRuns: { readonly ofEnvironments: ReadEnvironmentRuns };
  /**
   * Returns the reason why the caller may not give these secrets to an environment that already has the secrets `before`; null if the
   * caller may.
   */
  checkSecrets(
    db: Queryable,
    vault: Vault,
    caller: Principal,
    references: readonly SecretReference[],
    before: readonly SecretReference[],
  ): Promise<RefusedSecrets | null>;
}

export type ReplaceOutcome =
  | { readonly kind: 'replaced'; readonly environment: Environment }
  /** 404 */
  | { readonly kind: 'not_found' }
  | RefusedSecrets;

/** Replaces the configuration of an environment, if the caller may use the secrets that are new in it. */
export async function replaceEnvironment(
  { db, vault, lastRuns, checkSecrets }: ReplaceDeps,
  by: Principal,
  uid: string,
  config: EnvironmentConfig,
): Promise<ReplaceOutcome> {
  return await db.transaction(async (tx): Promise<ReplaceOutcome> => {
    // Lock the environment. Otherwise the configuration could name a secret that is deleted at the same time, because secrets that the
    // environment already had are not checked.
    const before = await lockEnvironment(tx, by.teamId, uid);
    if (!before) return { kind: 'not_found' };
    const refused = await checkSecrets(tx, vault, by, config.secrets ?? [], before.secrets ?? []);
    if (refused) return refused;
    await updateEnvironment(tx, by, uid, config);
    const environment = await readEnvironment(tx, by, uid, lastRuns.ofEnvironments);
    return environment ? { kind: 'replaced', environment } : { kind: 'not_found' };
  });
}
