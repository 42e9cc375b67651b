/** The check runs that show runs on GitHub. Each is a row of the comments, with the id of GitHub's check run. */
import { hash } from 'node:crypto';
import type { Queryable } from '../../platform/store/database/database.ts';
import { defineStatement, uuid } from '../../platform/store/database/statement.ts';

/** Returns the key of the check run of a run. */
export const checkKeyOf = (runId: string): string =>
  hash('sha256', `check run of ${runId}`).replace(/^(.{8})(.{4})(.{4})(.{4})(.{12}).*$/, '$1-$2-$3-$4-$5');

const isOwn = defineStatement({
  name: 'find_github_check_run',
  text: `
    SELECT c.key FROM github_comments c JOIN github_places p ON p.id = c.place_id
    WHERE c.key = $1 AND c.comment_id = $2 AND p.installation_uid = $3 AND p.repository_id = $4`,
  row: { key: uuid },
});

/** Returns whether GitHub's check run shows this run in this repository. */
export const showsRun = async (
  db: Queryable,
  of: {
    readonly runId: string;
    readonly checkRunId: number;
    readonly installationUid: string;
    readonly repositoryId: number;
  },
): Promise<boolean> =>
  (await db.query(isOwn, [checkKeyOf(of.runId), of.checkRunId, of.installationUid, of.repositoryId])).length === 1;
