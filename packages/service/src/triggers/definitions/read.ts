import type { FactoryDefinitionItem } from '@runyard/contract/factories/factory-definitions';
import { readDefinition } from '@runyard/definitions/read-definition';
import type { Queryable } from '../../platform/store/database/database.ts';
import { readProfiles } from '../../team/access/profiles.ts';
import { toChanges } from './apply.ts';
import type { CheckDeps } from './check-configs.ts';
import { findMissingSchedules, noticesOf, toNoticed } from './notices.ts';
import { driftOf, type FactoryAddress, readDefinedEnvironments, readFactoryState, readTeamSecrets } from './state.ts';
import { readStoredDefinition } from './stored.ts';

/**
 * Returns the last applied definition, and the differences between it and the present factory. Returns null if no definition was
 * applied, or the team has no such factory.
 */
export async function readFactoryDefinition(
  { models, vault }: CheckDeps,
  db: Queryable,
  factory: FactoryAddress,
): Promise<FactoryDefinitionItem | null> {
  const { teamId, factoryUid } = factory;
  const stored = await readStoredDefinition(db, teamId, factoryUid);
  if (!stored) return null;
  const { version, files, variables, applied_at, uids, commit_id } = stored;
  const read = readDefinition(files, { kept: variables });
  const definition = read.ok ? read.definition : undefined;
  const secrets = definition ? await readTeamSecrets(db, vault, teamId, definition) : new Map();
  const environments = await readDefinedEnvironments(db, teamId, uids);
  const state = await readFactoryState(db, vault, factory, environments);
  const drift = definition ? driftOf(state, definition, uids, secrets) : [];
  const actor = { kind: 'user', uid: stored.applied_by_uid } as const;
  const noticed = read.ok ? toNoticed(read) : undefined;
  const profileOf = await readProfiles(db, teamId, [actor]);
  return {
    version,
    files,
    variables,
    applied_at,
    ...(commit_id === null ? {} : { commit: commit_id }),
    applied_by: profileOf(actor),
    drift: toChanges(drift),
    // The stored files may have an older format, which cannot be read any more.
    notices: noticed ? noticesOf(models, noticed, await findMissingSchedules(db, teamId, noticed)) : [],
  };
}
