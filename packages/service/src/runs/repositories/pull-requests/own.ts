/** Finds out which pull requests are those of runs. */
import type { Queryable } from '../../../platform/store/database/database.ts';
import { boolean, defineStatement, text, uuid } from '../../../platform/store/database/statement.ts';

interface Named {
  /** In the canonical form of artifacts. */
  readonly url: string;
  /** `owner/repo` in lower case. */
  readonly repository: string;
  /** The branch that it asks to merge. */
  readonly branch: string;
}

/** A run may report any address. So its push of the branch must be known too. */
const find = defineStatement({
  name: 'find_pull_request_of_run',
  text: `
    SELECT asked.url, a.run_id FROM unnest($2::text[], $3::text[], $4::text[]) AS asked (url, repository, branch)
    JOIN artifacts a ON a.team_id = $1 AND a.canonical_url = asked.url AND a.artifact_type = 'PULL_REQUEST' AND a.is_ready
    JOIN pushed_branches p ON p.run_id = a.run_id
      AND p.repository = asked.repository AND p.branch = asked.branch AND p.result = 'pushed'
    ORDER BY a.run_id LIMIT 1`,
  row: { url: text(), run_id: uuid },
});

/** Returns a pull request that a run of the team has reported, and whose branch this run has pushed, with the first such run; undefined: there is none. */
export async function findPullRequestOfRun<N extends Named>(
  db: Queryable,
  teamId: string,
  named: readonly N[],
): Promise<(N & { readonly runId: string }) | undefined> {
  if (named.length === 0) return undefined;
  const values = [
    named.map(({ url }) => url),
    named.map(({ repository }) => repository),
    named.map(({ branch }) => branch),
  ];
  const [found] = await db.query(find, [teamId, ...values]);
  const pull = named.find(({ url }) => url === found?.url);
  return found && pull && { ...pull, runId: found.run_id };
}

const readOpened = defineStatement({
  name: 'read_head_of_opened_pull_request',
  text: `
    SELECT p.to_id AS head FROM artifacts a JOIN pushed_branches p ON p.run_id = a.run_id AND p.branch = a.data->>'branch'
    WHERE a.run_id = $1 AND a.artifact_type = 'PULL_REQUEST' AND a.is_opened AND p.repository = $2 AND p.result = 'pushed'
      AND starts_with(lower(a.canonical_url), $3) ORDER BY p.number DESC LIMIT 1`,
  row: { head: text() },
});

/**
 * Returns the newest commit that the run has pushed to the branch of a pull request that the service opened for it; undefined: there is none.
 * `web`: the origin of the code host's pages.
 */
export async function readOpenedHead(
  db: Queryable,
  runId: string,
  { web, repository }: { readonly web: string; readonly repository: string },
): Promise<string | undefined> {
  const name = repository.toLowerCase();
  return (await db.query(readOpened, [runId, name, `${web}/${name}/pull/`]))[0]?.head;
}

const findPush = defineStatement({
  name: 'find_push_of_commit',
  text: `
    SELECT EXISTS (SELECT FROM pushed_branches p JOIN runs r ON r.id = p.run_id
      WHERE p.to_id = $2 AND p.result IN ('sent', 'unknown', 'pushed') AND r.team_id = $1) AS is_pushed`,
  row: { is_pushed: boolean },
});

/** Returns whether a run of the team has pushed the commit. A push is recorded before it is forwarded, so before an event of it arrives. */
export const hasPushed = async (db: Queryable, teamId: string, commit: string): Promise<boolean> =>
  (await db.query(findPush, [teamId, commit]))[0]?.is_pushed ?? false;
