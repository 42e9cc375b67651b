import type { SecretReference } from '@runyard/contract/secrets/secrets';
import type { Fault } from '../../platform/fault.ts';
import type { Vault } from '../../platform/secrets/vault.ts';
import type { Queryable } from '../../platform/store/database/database.ts';
import { describeUnusable, faultsOfReferences, findUsableSecrets } from './find-usable.ts';
import type { SecretCaller } from './stored-secrets.ts';

/** Reasons why a configuration of an environment is refused: `invalid` 400, `forbidden` 403. */
export type RefusedSecrets =
  | { readonly kind: 'invalid'; readonly faults: readonly Fault[] }
  | { readonly kind: 'forbidden'; readonly detail: string };

/**
 * Checks the secrets that the caller gives to an environment. The secrets must belong to the team, because every run in the environment
 * gets them. The caller must be allowed to use each secret that the environment does not have yet. Returns null if there is no fault.
 */
export async function checkEnvironmentSecrets(
  db: Queryable,
  vault: Vault,
  { teamId, creator }: SecretCaller,
  references: readonly SecretReference[],
  before: readonly SecretReference[],
): Promise<RefusedSecrets | null> {
  const faults = faultsOfReferences(references);
  if (faults.length > 0) return { kind: 'invalid', faults };
  const user = { teamId, actor: creator };
  const ofTeam = await findUsableSecrets(db, vault, user, { ofRun: [], ofEnvironment: references });
  if (ofTeam.kind === 'withheld') throw new Error('a request without contents withholds nothing');
  if (ofTeam.kind !== 'ok') {
    const noSecret = `there is no secret ${ofTeam.name} of the team. An environment cannot have personal secrets: every run in it gets them`;
    const message = ofTeam.kind === 'unknown' ? noSecret : describeUnusable(ofTeam);
    return { kind: 'invalid', faults: [{ path: 'config.secrets', message }] };
  }
  const known = new Set(before.map(({ name }) => name));
  const added = references.filter(({ name }) => !known.has(name));
  const usable = await findUsableSecrets(db, vault, user, { ofRun: added, ofEnvironment: [] });
  if (usable.kind === 'ok' || usable.kind === 'withheld') return null;
  return { kind: 'forbidden', detail: `config.secrets: ${describeUnusable(usable)}.` };
}
