/** Syncs factories: reads the definition of a factory in its source repository and applies it. */

import type { DefinitionVariables } from '@runyard/contract/factories/definition-variables';
import type { FactorySync } from '@runyard/contract/factories/factory-sources';
import { isAtLeast, type Role } from '@runyard/contract/wire/access';
import type { Database, Queryable } from '../../../platform/store/database/database.ts';
import { type Author, TooManyChanges } from '../../../team/access/audit/record.ts';
import { readAuthor } from '../../../team/access/people/members.ts';
import { type ApplyOutcome, applyDefinition, type DefinitionDeps, type FromCommit } from '../apply.ts';
import { type SourceRead, type SourceReader, toSyncFaults } from './reader.ts';
import {
  type ClaimedSource,
  claimDueSources,
  claimSource,
  type Finished,
  finishLook,
  finishSync,
  isOlderThan,
  readSource,
  releaseSource,
  type SourceRow,
} from './records.ts';

interface HowToSync {
  readonly isForced: boolean;
  readonly given?: DefinitionVariables | undefined;
}

export interface SyncDeps extends DefinitionDeps {
  readonly db: Database;
  readonly sourceReader: SourceReader;
  readonly log: { error(details: object, message: string): void };
}

/**
 * A commit that could not be applied is tried again after this many seconds, because the reason may no longer exist. For example, a
 * missing secret may exist now.
 */
const retrySeconds = 600;
const neededRole: Role = 'member';

const nothing = { changes: [], drift: [], notices: [], problems: [] };
const notAllowed =
  'The person who configured the source is no longer a member of the team, or is now a viewer. Someone who may apply definitions must set the source again.';

/** Returns the person who set a source, if this person may apply definitions now. */
async function readSetter(db: Queryable, { team_id, set_by_uid }: SourceRow): Promise<Author | null> {
  const author = await readAuthor(db, team_id, set_by_uid);
  return author && isAtLeast(author.role, neededRole) ? author : null;
}

const placeOf = ({ team_id: teamId, owner, repo, branch, folder }: SourceRow, { creator }: Author) => ({
  teamId,
  creator,
  repository: { owner, repo },
  branch,
  folder,
});

/** Syncs the factories whose sources are due. Each source is claimed by one process. */
export async function syncDueSources(deps: SyncDeps, signal: AbortSignal): Promise<void> {
  const claimed = await claimDueSources(deps.db);
  await Promise.all(claimed.map((each) => syncClaimed(deps, each, signal, { isForced: false })));
}

/** `no_source` becomes 404. `busy` becomes 409: another sync of the factory is in progress. */
export type SyncNowOutcome = FactorySync | 'no_source' | 'busy';

/** Syncs a factory with its repository now, even if the commit was applied before. */
export async function syncNow(
  deps: SyncDeps,
  { teamId, factoryUid }: { readonly teamId: string; readonly factoryUid: string },
  signal: AbortSignal,
): Promise<SyncNowOutcome> {
  const claimed = await claimSource(deps.db, teamId, factoryUid);
  if (!claimed) return (await readSource(deps.db, teamId, factoryUid)) ? 'busy' : 'no_source';
  return await syncClaimed(deps, claimed, signal, { isForced: true });
}

/**
 * Returns what a sync with a source would change, and changes nothing. The source need not be stored. `given`: variables that the
 * definition must declare.
 */
export async function planSync(
  deps: SyncDeps,
  source: Pick<SourceRow, 'owner' | 'repo' | 'branch' | 'folder' | 'variables' | 'team_id' | 'factory_uid'>,
  by: Author,
  signal: AbortSignal,
  given?: DefinitionVariables,
): Promise<FactorySync> {
  const { team_id: teamId, owner, repo, branch, folder } = source;
  const place = { teamId, creator: by.creator, repository: { owner, repo }, branch, folder };
  const read = await deps.sourceReader.read(place, signal);
  if (read.kind !== 'files') return toSync(finishedOfRead(read), true);
  const from: FromCommit = { commit: read.commit, variables: source.variables, keep: async () => true };
  const request = { files: read.files, variables: given, dry_run: true };
  return toAnswer(await applyDefinition(deps, by, source.factory_uid, request, { from }), read.commit, true);
}

/** Returns what a sync with the stored source would change now. Has the rights of the person who set the source. */
export async function planSyncOfStored(
  deps: SyncDeps,
  { teamId, factoryUid }: { readonly teamId: string; readonly factoryUid: string },
  signal: AbortSignal,
): Promise<FactorySync | 'no_source'> {
  const source = await readSource(deps.db, teamId, factoryUid);
  if (!source) return 'no_source';
  const by = await readSetter(deps.db, source);
  if (!by) return toSync({ outcome: 'not_allowed', message: notAllowed }, true);
  return await planSync(deps, source, by, signal);
}

/**
 * Syncs a factory whose source this process has claimed, and ends the claim. `isForced`: syncs even if the commit was applied before.
 * `given`: variables that the definition must declare.
 */
export async function syncClaimed(
  deps: SyncDeps,
  claimed: ClaimedSource,
  signal: AbortSignal,
  how: HowToSync,
): Promise<FactorySync> {
  try {
    return await attempt(deps, claimed, signal, how);
  } catch (error) {
    if (!(error instanceof TooManyChanges))
      deps.log.error({ err: error, factory_uid: claimed.source.factory_uid }, 'a sync of a factory failed');
    const message =
      error instanceof TooManyChanges
        ? `${error.message}; the sync is tried again later.`
        : 'The service could not apply the definition. Its log has the reason.';
    return await finish(deps.db, claimed, { outcome: 'failed', message });
  }
}

async function attempt(
  deps: SyncDeps,
  claimed: ClaimedSource,
  signal: AbortSignal,
  { isForced, given }: HowToSync,
): Promise<FactorySync> {
  const { db } = deps;
  const { source } = claimed;
  const by = await readSetter(db, source);
  if (!by) return await finish(db, claimed, { outcome: 'not_allowed', message: notAllowed });
  const isKnown = async (commit: string) => !isForced && (await isSettled(db, source, commit));
  const read = await deps.sourceReader.read(placeOf(source, by), signal, isKnown);
  if (signal.aborted) {
    await releaseSource(db, claimed);
    return toSync({ outcome: 'superseded', message: 'The service is stopping. Sync again.' }, false);
  }
  if (read.kind === 'known') {
    await finishLook(db, claimed, read);
    return toSync({ outcome: 'applied', commit: read.commit }, false);
  }
  if (read.kind !== 'files') return await finish(db, claimed, finishedOfRead(read));
  const { commit, files, foundAt } = read;
  const from: FromCommit = {
    commit,
    variables: source.variables,
    // Check again whether the person may apply definitions, because the role may have changed while the repository was read.
    keep: async (tx) =>
      (await readSetter(tx, source)) !== null &&
      (await finishSync(tx, claimed, { outcome: 'applied', commit, foundAt })),
  };
  const outcome = await applyDefinition(
    deps,
    by,
    source.factory_uid,
    { files, variables: given, dry_run: false },
    { from },
  );
  // If the person has lost the rights meanwhile, `finishSync` was not called. So end the claim here, because the claim would delay
  // other sources of the team.
  if (outcome.kind === 'superseded' && !(await readSetter(db, source)))
    return await finish(db, claimed, { outcome: 'not_allowed', message: notAllowed });
  if (outcome.kind === 'faulty')
    return await finish(db, claimed, { outcome: 'faulty', commit, foundAt, errors: toSyncFaults(outcome.faults) });
  if (outcome.kind === 'policy_violation' || outcome.kind === 'policy_unavailable')
    return await finish(db, claimed, { outcome: 'failed', commit, foundAt, message: outcome.detail });
  return toAnswer(outcome, commit, false);
}

/** Returns whether a commit needs no sync now: the commit was applied, or applying it failed less than `retrySeconds` seconds ago. */
async function isSettled(db: Queryable, { applied_commit, last_commit, last_at }: SourceRow, commit: string) {
  if (commit === applied_commit) return true;
  return commit === last_commit && last_at !== null && !(await isOlderThan(db, last_at, retrySeconds));
}

/** Stores the outcome of a sync that changed nothing in the factory, and returns the answer. */
async function finish(db: Queryable, claimed: ClaimedSource, finished: Finished): Promise<FactorySync> {
  return (await finishSync(db, claimed, finished)) ? toSync(finished, false) : superseded(false);
}

function finishedOfRead(read: Exclude<SourceRead, { kind: 'files' | 'known' }> | SourceRead): Finished {
  switch (read.kind) {
    case 'faulty':
      return { outcome: 'faulty', commit: read.commit, foundAt: read.foundAt, errors: read.errors };
    case 'unreadable':
      return { outcome: 'unreadable', message: read.message };
    case 'files':
    case 'known':
      return { outcome: 'applied', commit: read.commit };
  }
}

const toSync = (
  { outcome, commit, message, errors }: Omit<Finished, 'outcome'> & { readonly outcome: FactorySync['outcome'] },
  dry_run: boolean,
): FactorySync => ({
  ...nothing,
  outcome,
  dry_run,
  ...(commit === undefined ? {} : { commit }),
  ...(message === undefined ? {} : { message }),
  ...(errors === undefined ? {} : { errors: [...errors] }),
});

/** Returns the answer for a sync that is not done, because the branch has another commit than the expected one or cannot be read. */
export function unexpectedSync(read: SourceRead, expected: string): FactorySync {
  if (read.kind === 'unreadable') return toSync(finishedOfRead(read), false);
  const { commit } = read;
  const message = `The branch is at the commit ${commit} now, and ${expected} was expected. Look at the plan of the new commit.`;
  return toSync({ outcome: 'superseded', commit, message }, false);
}

const superseded = (dryRun: boolean): FactorySync =>
  toSync(
    {
      outcome: 'superseded',
      message: 'The source was changed or removed meanwhile, or another sync has taken over. Read the source.',
    },
    dryRun,
  );

function toAnswer(outcome: ApplyOutcome, commit: string, dryRun: boolean): FactorySync {
  switch (outcome.kind) {
    case 'applied':
      return { outcome: 'applied', commit, ...outcome.response };
    case 'faulty':
      return toSync({ outcome: 'faulty', commit, errors: toSyncFaults(outcome.faults) }, dryRun);
    case 'policy_violation':
    case 'policy_unavailable':
      return toSync({ outcome: 'failed', commit, message: outcome.detail }, dryRun);
    case 'no_factory':
    case 'superseded':
    case 'other_version':
    case 'has_source':
      return superseded(dryRun);
  }
}
