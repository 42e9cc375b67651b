import { maxEnvironmentVisitors } from '@runyard/contract/limits';
import type { Database, Queryable, Statement } from '../store/database/database.ts';
import { defineStatement, text } from '../store/database/statement.ts';

const share = defineStatement({
  name: 'set_environment_link',
  text: `
    UPDATE environments SET link_shared_at = CASE WHEN $3::boolean THEN coalesce(link_shared_at, now()) END
    WHERE team_id = $1 AND uid = $2 RETURNING uid`,
  row: { uid: text() },
});

const removeVisitors: Statement = {
  name: 'remove_environment_visitors',
  text: 'DELETE FROM environment_visitors WHERE environment_uid = $1',
};

/** The lock puts the visit before the end of the sharing, which then deletes it, or behind it. */
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
 * Lets every person who has the uid of an environment use it as a guest, or ends that for all who came so. False: the team has no such
 * environment.
 */
export async function setLinkSharing(db: Database, teamId: string, uid: string, isShared: boolean): Promise<boolean> {
  return await db.transaction(async (tx) => {
    if ((await tx.query(share, [teamId, uid, isShared])).length === 0) return false;
    if (!isShared) await tx.query(removeVisitors, [uid]);
    return true;
  });
}

/** Notes that a person opened an environment by its link. False: it is not shared, or as many people as possible have opened it. */
export async function visitByLink(db: Queryable, uid: string, personUid: string): Promise<boolean> {
  return (await db.query(visit, [uid, personUid, maxEnvironmentVisitors])).length > 0;
}
