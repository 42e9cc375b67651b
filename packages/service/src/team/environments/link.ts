import { maxEnvironmentVisitors } from '@runyard/contract/limits';
import type { Database, Queryable } from '../../platform/store/database/database.ts';
import { boolean, defineStatement, text } from '../../platform/store/database/statement.ts';
import { type Author, recordChange } from '../access/audit/record.ts';

const share = defineStatement({
  name: 'set_environment_link',
  text: `
    WITH before AS (SELECT uid, link_shared_at FROM environments WHERE team_id = $1 AND uid = $2 FOR UPDATE)
    UPDATE environments e SET link_shared_at = CASE WHEN $3::boolean THEN coalesce(e.link_shared_at, now()) END
    FROM before WHERE e.uid = before.uid
    RETURNING e.config->>'name' AS name, before.link_shared_at IS NOT NULL AS was_shared`,
  row: { name: text(), was_shared: boolean },
});

const removeVisitors = defineStatement({
  name: 'remove_environment_visitors',
  text: 'DELETE FROM environment_visitors WHERE environment_uid = $1',
  row: {},
});

/**
 * The statement locks the environment, so that a visit is recorded either before or after the end of the sharing. The end of the sharing
 * deletes earlier visits, and later visits are refused.
 */
const visit = defineStatement({
  name: 'visit_environment',
  text: `
    WITH shared AS (SELECT uid FROM environments WHERE uid = $1 AND link_shared_at IS NOT NULL FOR SHARE)
    INSERT INTO environment_visitors (environment_uid, user_id)
    SELECT shared.uid, u.id FROM shared, users u
    WHERE u.uid = $2 AND (SELECT count(*) FROM environment_visitors WHERE environment_uid = $1) < $3
    ON CONFLICT DO NOTHING RETURNING environment_uid`,
  row: { environment_uid: text() },
});

/**
 * Allows every person who knows the uid of an environment to use it as a guest, or ends this access for everyone who opened the link.
 * Returns false if the team has no such environment.
 */
export async function setLinkSharing(db: Database, by: Author, uid: string, isShared: boolean): Promise<boolean> {
  return await db.transaction(async (tx) => {
    const [before] = await tx.query(share, [by.teamId, uid, isShared]);
    if (!before) return false;
    if (!isShared) await tx.query(removeVisitors, [uid]);
    if (before.was_shared !== isShared)
      await recordChange(tx, by, {
        action: isShared ? 'environment.share' : 'environment.unshare',
        subject: { type: 'environment', uid, name: before.name },
        ...(isShared ? {} : { endsAccess: true }),
      });
    return true;
  });
}

/**
 * Records that a person opened an environment by its link. Returns false if the environment is not shared, or the
 * maximum number of people have opened it.
 */
export async function visitByLink(db: Queryable, uid: string, personUid: string): Promise<boolean> {
  return (await db.query(visit, [uid, personUid, maxEnvironmentVisitors])).length > 0;
}
