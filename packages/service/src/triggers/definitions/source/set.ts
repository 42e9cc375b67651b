/** Sets and removes the sources of factories. */
import { Repository } from '@runyard/contract/environments/repositories';
import type { FactorySync, SetFactorySourceRequest } from '@runyard/contract/factories/factory-sources';
import type { Database } from '../../../platform/store/database/database.ts';
import { type Author, recordChange } from '../../../team/access/audit/record.ts';
import type { CodeHosts } from '../../../team/code-hosts/code-hosts.ts';
import { lockFactory, readFactory } from '../../factories/factories.ts';
import type { SourceReader } from './reader.ts';
import { readSource, removeSource, type WantedSource, writeSource } from './records.ts';
import { planSync, type SyncDeps, syncClaimed, unexpectedSync } from './sync.ts';

/** Outcome of setting a source. `invalid` becomes 400, `no_factory` 404. */
export type SetOutcome =
  | { readonly kind: 'set'; readonly sync: FactorySync }
  | { readonly kind: 'invalid'; readonly message: string }
  | { readonly kind: 'no_factory' };

/** Stores the source of a factory and does the first sync with it. A dry run stores nothing and only plans the sync. */
export async function setSource(
  deps: SyncDeps & { readonly codeHosts: Pick<CodeHosts, 'urlOf'> },
  by: Author,
  factoryUid: string,
  request: SetFactorySourceRequest,
  signal: AbortSignal,
): Promise<SetOutcome> {
  const { teamId } = by;
  const repository = parseRepository(request.repository, deps.codeHosts);
  if (typeof repository === 'string') return { kind: 'invalid', message: repository };
  const known = await readFactory(deps.db, teamId, factoryUid);
  if (!known) return { kind: 'no_factory' };
  const { branch = null, folder = '', poll_interval_seconds, variables = {} } = request;
  const wanted: WantedSource = { ...repository, branch, folder, poll_interval_seconds, variables };
  if (request.dry_run) {
    const sync = await planSync(deps, { ...wanted, team_id: teamId, factory_uid: factoryUid }, by, signal, variables);
    return { kind: 'set', sync };
  }
  const checked = await expectCommit(deps, by, wanted, request.expected_commit, signal);
  if (checked.kind === 'not_as_expected') return { kind: 'set', sync: checked.sync };
  const claimed = await deps.db.transaction(async (tx) => {
    if (!(await lockFactory(tx, teamId, factoryUid))) return null;
    const before = await readSource(tx, teamId, factoryUid);
    const stored = await writeSource(tx, { teamId, factoryUid }, wanted, by.creator.uid);
    const subject = { type: 'factory_source', uid: factoryUid, name: known.name };
    const states = { ...(before ? { before: stateOf(before) } : {}), after: stateOf(wanted) };
    await recordChange(tx, by, { action: 'factory_source.set', subject, ...states });
    return stored;
  });
  if (!claimed) return { kind: 'no_factory' };
  const { sourceReader } = checked;
  const how = { isForced: true, given: variables };
  return { kind: 'set', sync: await syncClaimed({ ...deps, sourceReader }, claimed, signal, how) };
}

/**
 * Reads the repository and compares the commit of the branch with the expected commit. A repository that cannot be read never has the
 * expected commit. The returned reader always returns the files that were compared, so the sync applies these files even if a push
 * arrives meanwhile.
 */
async function expectCommit(
  { sourceReader }: Pick<SyncDeps, 'sourceReader'>,
  { teamId, creator }: Author,
  { owner, repo, branch, folder }: WantedSource,
  expected: string | undefined,
  signal: AbortSignal,
): Promise<
  | { readonly kind: 'as_expected'; readonly sourceReader: SourceReader }
  | { readonly kind: 'not_as_expected'; readonly sync: FactorySync }
> {
  if (expected === undefined) return { kind: 'as_expected', sourceReader };
  const read = await sourceReader.read({ teamId, creator, repository: { owner, repo }, branch, folder }, signal);
  if ('commit' in read && read.commit === expected)
    return { kind: 'as_expected', sourceReader: { read: async () => read } };
  return { kind: 'not_as_expected', sync: unexpectedSync(read, expected) };
}

/** Returns a source in the form of the audit log. */
const stateOf = ({ owner, repo, branch, folder, poll_interval_seconds, variables }: WantedSource) => ({
  repository: `${owner}/${repo}`,
  branch,
  folder,
  poll_interval_seconds,
  variables,
});

/** Deletes the source of a factory, but not the definition that was applied. Returns false if the factory has no source. */
export async function removeFactorySource(db: Database, by: Author, factoryUid: string): Promise<boolean> {
  return await db.transaction(async (tx) => {
    if (!(await lockFactory(tx, by.teamId, factoryUid))) return false;
    const repository = await removeSource(tx, factoryUid);
    if (repository === null) return false;
    const subject = { type: 'factory_source', uid: factoryUid, name: repository };
    await recordChange(tx, by, { action: 'factory_source.delete', subject, before: { repository }, endsAccess: true });
    return true;
  });
}

const withoutSuffix = (path: string): string => path.replace(/\/+$/, '').replace(/\.git$/, '');

/** Parses `owner/repo`, or the URL of a repository on the code host of the service. Returns a message if the text is neither. */
export function parseRepository(text: string, codeHosts: Pick<CodeHosts, 'urlOf'>): Repository | string {
  const url = URL.canParse(text) && text.includes('://') ? new URL(text) : null;
  const [owner = '', repo = '', ...more] = withoutSuffix(url ? url.pathname.slice(1) : text.trim())
    .split('/')
    .slice(url ? -2 : 0);
  const read = Repository.safeParse({ owner, repo });
  if (!read.success || more.length > 0) return 'must be owner/repo, or the URL of a repository on the code host';
  if (url === null) return read.data;
  const own = codeHosts.urlOf(read.data);
  if (url.username !== '' || url.password !== '')
    return 'must have no credential; store it with POST /code-hosts, and leave it out of the URL';
  const isOwn = url.origin === own.origin && withoutSuffix(url.pathname) === withoutSuffix(own.pathname);
  return isOwn && url.search === '' ? read.data : `must be on the code host of this service, such as ${own.href}`;
}
