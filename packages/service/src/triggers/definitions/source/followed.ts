/**
 * Reads which branches are sources of factories. A sync applies the files of such a branch with the rights of the person who
 * configured the source. So no run may push to such a branch.
 */
import type { Repository } from '@runyard/contract/environments/repositories';
import type { Queryable } from '../../../platform/store/database/database.ts';
import { boolean, defineStatement, nullable, text } from '../../../platform/store/database/statement.ts';

/** The repository that a push names. `foundAt`: its URL at the code host after redirects; null: no request was sent to the code host. */
export interface PushedRepository {
  readonly repository: Repository;
  readonly foundAt: URL | null;
}

const withoutSuffix = (name: string): string => name.replace(/\/+$/, '').replace(/(\.git)+$/, '');

/**
 * Returns a text that is the same for all URLs of one repository. Code hosts can ignore upper and lower case, `.git`, and slashes at
 * the end of a URL.
 */
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

/** Returns whether there is any factory whose source is a branch of a repository. */
export async function isAnyBranchFollowed(db: Queryable): Promise<boolean> {
  return (await db.query(readAny))[0]?.found ?? false;
}

/** Returns the branches of a repository that are sources of factories. An entry of null means the default branch. */
export async function readFollowedBranches(
  db: Queryable,
  { repository: { owner, repo }, foundAt }: PushedRepository,
): Promise<readonly (string | null)[]> {
  const name = withoutSuffix(`${owner}/${repo}`.toLowerCase());
  const rows = await db.query(readBranches, [name, foundAt === null ? null : placeOf(foundAt)]);
  return rows.map(({ branch }) => branch);
}
