import type { FactorySource } from '@runyard/contract/factories/factory-sources';
import type { Queryable } from '../../../platform/store/database/database.ts';
import { readProfiles } from '../../../team/access/profiles.ts';
import type { CodeHosts } from '../../../team/code-hosts/code-hosts.ts';
import { readStoredDefinition } from '../stored.ts';
import { readSource, type SourceRow } from './records.ts';

interface ShowDeps {
  readonly db: Queryable;
  readonly codeHosts: Pick<CodeHosts, 'urlOf'>;
}

/** Returns the source of a factory in the form of the API; null if the factory has no source, or the team has no such factory. */
export async function showSource(
  { db, codeHosts }: ShowDeps,
  { teamId, factoryUid }: { readonly teamId: string; readonly factoryUid: string },
): Promise<FactorySource | null> {
  const source = await readSource(db, teamId, factoryUid);
  if (!source) return null;
  const { owner, repo, branch, folder } = source;
  const commit = (await readStoredDefinition(db, teamId, factoryUid))?.commit_id ?? null;
  const setter = { kind: 'user', uid: source.set_by_uid } as const;
  const profileOf = await readProfiles(db, teamId, [setter]);
  return {
    repository: `${owner}/${repo}`,
    url: codeHosts.urlOf({ owner, repo }).href,
    ...(branch === null ? {} : { branch }),
    ...(folder === '' ? {} : { folder }),
    poll_interval_seconds: source.poll_interval_seconds,
    variables: source.variables,
    set_by: profileOf(setter),
    set_at: source.set_at,
    ...(commit === null ? {} : { applied_commit: commit }),
    ...(source.checked_at === null ? {} : { checked_at: source.checked_at }),
    next_check_at: source.due_at,
    ...lastSyncOf(source),
  };
}

function lastSyncOf(source: SourceRow): Pick<FactorySource, 'last_sync'> {
  const { last_outcome: outcome, last_at: at, last_commit, last_message, last_faults } = source;
  if (outcome === null || at === null) return {};
  return {
    last_sync: {
      outcome,
      at,
      ...(last_commit === null ? {} : { commit: last_commit }),
      ...(last_message === null ? {} : { message: last_message }),
      ...(last_faults === null ? {} : { errors: last_faults }),
    },
  };
}
