/** Links accounts of GitHub with people. The numeric id of an account counts, because a login can be renamed and taken by another account. */
import type { Queryable } from '../../platform/store/database/database.ts';
import { defineStatement, integer, text } from '../../platform/store/database/statement.ts';
import { type Author, recordAction } from '../../team/access/audit/record.ts';

const lockLinks = defineStatement({
  name: 'lock_github_accounts',
  text: "SELECT pg_advisory_xact_lock(hashtextextended('github_people of ' || $1, 0))",
  row: {},
});

const link = defineStatement({
  name: 'link_github_account',
  text: `
    INSERT INTO github_people AS p (app_uid, github_id, user_uid, login) VALUES ($1, $2, $3, $4)
    ON CONFLICT (app_uid, user_uid) DO UPDATE SET github_id = excluded.github_id, login = excluded.login, linked_at = clock_timestamp()
    RETURNING github_id`,
  row: { github_id: integer },
});

const findOwner = defineStatement({
  name: 'find_person_of_github_account',
  text: 'SELECT user_uid FROM github_people WHERE app_uid = $1 AND github_id = $2',
  row: { user_uid: text() },
});

const unlink = defineStatement({
  name: 'unlink_github_account',
  text: 'DELETE FROM github_people WHERE app_uid = $1 AND user_uid = $2 RETURNING login',
  row: { login: text() },
});

const readOf = defineStatement({
  name: 'read_github_accounts_of_person',
  text: 'SELECT app_uid, github_id, login FROM github_people WHERE user_uid = $1',
  row: { app_uid: text(), github_id: integer, login: text() },
});

export interface GithubAccount {
  readonly id: number;
  readonly login: string;
}

/** Returns the UID of the person who has linked the account; null: no person has linked it. */
export async function findPerson(db: Queryable, appUid: string, githubId: number): Promise<string | null> {
  return (await db.query(findOwner, [appUid, githubId]))[0]?.user_uid ?? null;
}

/** Links the account with the author, instead of the author's earlier account. Returns false if somebody else has linked the account. */
export async function linkPerson(tx: Queryable, by: Author, appUid: string, account: GithubAccount): Promise<boolean> {
  await tx.query(lockLinks, [appUid]);
  const owner = await findPerson(tx, appUid, account.id);
  if (owner !== null && owner !== by.creator.uid) return false;
  await tx.query(link, [appUid, account.id, by.creator.uid, account.login]);
  const subject = { type: 'github_account', uid: String(account.id), name: account.login };
  await recordAction(tx, by, { action: 'github_account.link', subject, after: { app_uid: appUid } });
  return true;
}

/** Returns false if the author has linked no account. */
export async function unlinkPerson(tx: Queryable, by: Author, appUid: string): Promise<boolean> {
  const [gone] = await tx.query(unlink, [appUid, by.creator.uid]);
  if (!gone) return false;
  const subject = { type: 'github_account', uid: by.creator.uid, name: gone.login };
  await recordAction(tx, by, { action: 'github_account.unlink', subject, after: { app_uid: appUid } });
  return true;
}

/** Returns the accounts that a person has linked, by the UIDs of the Apps. */
export async function readAccountsOf(db: Queryable, userUid: string): Promise<ReadonlyMap<string, GithubAccount>> {
  const rows = await db.query(readOf, [userUid]);
  return new Map(rows.map(({ app_uid, github_id, login }) => [app_uid, { id: github_id, login }]));
}
