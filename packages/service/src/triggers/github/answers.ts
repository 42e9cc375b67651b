/** Counts the texts that runs write on GitHub with their tools, and finds the pull requests that they opened. */
import type { Queryable } from '../../platform/store/database/database.ts';
import { defineStatement, integer, uuid } from '../../platform/store/database/statement.ts';
import type { GithubApi, GithubAppKey } from '../../team/code-hosts/github-api.ts';
import type { LeasedComment } from './comments.ts';
import type { InstallationRow } from './installations.ts';
import { type PlaceRow, readPlace, recordPlace } from './places.ts';

const insert = defineStatement({
  name: 'insert_github_answer',
  text: `
    INSERT INTO github_comments AS c (key, place_id, answer_of, tool) VALUES ($1, $2, $3, $4)
    ON CONFLICT (key) DO UPDATE SET attempts = c.attempts + 1`,
  row: {},
});

/** Records that a run tries to write something. `key`: the same for the same request of the run. */
export async function recordAnswer(
  db: Queryable,
  { key, placeId, runId, tool }: Readonly<Record<'key' | 'placeId' | 'runId' | 'tool', string>>,
): Promise<void> {
  await db.query(insert, [key, placeId, runId, tool]);
}

const count = defineStatement({
  name: 'count_github_answers_of_run',
  text: `
    SELECT count(*) FILTER (WHERE tool = $2 AND asked_at IS NOT NULL AND key <> $3) AS used, coalesce(sum(attempts), 0) AS tried
    FROM github_comments WHERE answer_of = $1`,
  row: { used: integer, tried: integer },
});

/** Counts the other texts that the run has written with a tool, and all its attempts. A refusal by GitHub counts only as an attempt. */
export async function countAnswers(
  db: Queryable,
  { runId, tool, key }: Readonly<Record<'runId' | 'tool' | 'key', string>>,
): Promise<{ readonly used: number; readonly tried: number }> {
  return (await db.query(count, [runId, tool, key]))[0] ?? { used: 0, tried: 0 };
}

const takeBack = defineStatement({
  name: 'take_back_github_answer',
  text: 'UPDATE github_comments SET asked_at = NULL, leased_until = NULL WHERE key = $1 AND leased_until = $2 RETURNING key',
  row: { key: uuid },
});

/** Ends the lease of an answer that GitHub did not accept. */
export const takeBackAnswer = async (db: Queryable, { key, leased_until }: LeasedComment): Promise<void> => {
  await db.query(takeBack, [key, leased_until]);
};

/** Address of a pull request, below the origin of its host. */
const pullRequestPath = /^\/([A-Za-z0-9-]{1,39})\/([A-Za-z0-9._-]{1,100})\/pull\/(\d{1,9})$/;

/** Returns the owner, the name and the number of a pull request of this host; null if the address is another one. */
export function pullRequestAt(
  address: string,
  web: string,
): { readonly owner: string; readonly repo: string; readonly number: number } | null {
  const url = URL.parse(address);
  const [, owner, repo, number] = (url?.origin === web && pullRequestPath.exec(url.pathname)) || [];
  return owner && repo && number ? { owner, repo, number: Number(number) } : null;
}

/**
 * Returns the place of a pull request in an installation; null if the installation has no such repository. GitHub names the id of the
 * repository with the token that is limited to it.
 */
export async function placeOfPullRequest(
  db: Queryable,
  api: GithubApi,
  app: GithubAppKey,
  installation: InstallationRow,
  { repo, number }: { readonly repo: string; readonly number: number },
): Promise<PlaceRow | null> {
  const answer = await api.asApp(app, {
    method: 'POST',
    path: `/app/installations/${installation.installation_id}/access_tokens`,
    body: { repositories: [repo], permissions: { metadata: 'read' } },
  });
  const [found] = answer.kind === 'ok' ? (Object(answer.body).repositories ?? []) : [];
  const { id, full_name: repository, private: isPrivate } = Object(found);
  if (!Number.isSafeInteger(id) || typeof repository !== 'string') return null;
  const of = { repositoryId: id, repository, isPrivate: isPrivate === true, number, threadId: 0 };
  return await readPlace(db, await recordPlace(db, installation.uid, { ...of, kind: 'pull_request' }));
}
