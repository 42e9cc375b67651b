/**
 * The branches that sources of factories follow. No run may push to these branches, because their files are applied with the rights of the
 * person who configured the source.
 */
import type { Repository } from '@runyard/contract/environments/environments';
import type { Queryable } from '../../../platform/store/database/database.ts';
import { boolean, defineStatement, nullable, text } from '../../../platform/store/database/statement.ts';

/** A repository as a push names it, and its URL at the code host after redirects; null: the host was not asked. */
export interface PushedRepository {
  readonly repository: Repository;
  readonly foundAt: URL | null;
}

const withoutSuffix = (name: string): string => name.replace(/\/+$/, '').replace(/(\.git)+$/, '');

/** Returns the same text for two URLs of the same repository on a code host: hosts can ignore case, `.git` and a slash at the end. */
export const placeOf = (url: URL): string => withoutSuffix(`${url.host}${url.pathname}`.toLowerCase());

const readAny = defineStatement({
  name: 'read_whether_a_branch_is_followed',
  text: 'SELECT EXISTS (SELECT FROM factory_sources) AS found',
  row: { found: boolean },
});

/** Reads the sources of all teams, because several teams can use the same repository. */
const readBranches = defineStatement({
  name: 'read_followed_branches',
  text: `
    SELECT DISTINCT branch FROM factory_sources
    WHERE regexp_replace(lower(owner || '/' || repo), '(\\.git)+$', '') = $1 OR found_at = $2`,
  row: { branch: nullable(text()) },
});

/** Returns whether any factory follows a branch. */
export async function isAnyBranchFollowed(db: Queryable): Promise<boolean> {
  return (await db.query(readAny))[0]?.found ?? false;
}

/** Returns the branches of a repository that factories follow; null in the list: its default branch. */
export async function readFollowedBranches(
  db: Queryable,
  { repository: { owner, repo }, foundAt }: PushedRepository,
): Promise<readonly (string | null)[]> {
  const name = withoutSuffix(`${owner}/${repo}`.toLowerCase());
  const rows = await db.query(readBranches, [name, foundAt === null ? null : placeOf(foundAt)]);
  return rows.map(({ branch }) => branch);
}
