/** Stores the GitHub Apps of teams. The private key of an App is a credential of the code host. */
import { maxGithubApps } from '@runyard/contract/limits';
import { defineSealedRows } from '../../platform/secrets/seal-again.ts';
import type { Vault } from '../../platform/secrets/vault.ts';
import type { Queryable } from '../../platform/store/database/database.ts';
import {
  bytes,
  defineStatement,
  integer,
  nullable,
  type RowOf,
  text,
  timestamp,
  uuid,
} from '../../platform/store/database/statement.ts';
import { type Author, recordChange } from '../../team/access/audit/record.ts';
import { newUid } from '../../team/access/teams/uid.ts';
import type { GithubAppKey, GithubHost } from '../../team/code-hosts/github-api.ts';
import { openAppCredential } from '../../team/code-hosts/records.ts';

const purposeOf = (uid: string): string => `github app ${uid}`;

/** Names the columns with the encrypted secrets of Apps. */
export const sealedApps = defineSealedRows({
  table: 'github_apps',
  id: 'uid',
  sealed: 'sealed_secrets',
  purpose: purposeOf,
});

const row = {
  uid: text(),
  team_id: uuid,
  credential_id: uuid,
  host: text(),
  app_id: text(),
  slug: text(),
  client_id: text(),
  vault_key_id: text(),
  sealed_secrets: bytes,
  poll_problem: nullable(text()),
  created_at: timestamp,
};
const columns = Object.keys(row)
  .map((name) => (name === 'app_id' ? 'a.app_id::text AS app_id' : `a.${name}`))
  .join(', ');

const readAll = defineStatement({
  name: 'read_github_apps_of_team',
  text: `SELECT ${columns} FROM github_apps a WHERE a.team_id = $1 ORDER BY a.created_at, a.uid`,
  row,
});

const readOne = defineStatement({
  name: 'read_github_app',
  text: `SELECT ${columns} FROM github_apps a WHERE a.uid = $1`,
  row,
});

const readRoom = defineStatement({
  name: 'read_room_for_github_app',
  text: `
    SELECT count(*) AS count, count(*) FILTER (WHERE host = $2 AND app_id = $3::bigint) AS same FROM github_apps WHERE team_id = $1`,
  row: { count: integer, same: integer },
});

const lockTeam = defineStatement({
  name: 'lock_github_apps',
  text: "SELECT pg_advisory_xact_lock(hashtextextended('github_apps of ' || $1, 0))",
  row: {},
});

const insert = defineStatement({
  name: 'insert_github_app',
  text: `
    INSERT INTO github_apps AS a (uid, team_id, credential_id, host, app_id, slug, client_id, vault_key_id, sealed_secrets)
    VALUES ($1, $2, $3, $4, $5::bigint, $6, $7, $8, $9) RETURNING ${columns}`,
  row,
});

const remove = defineStatement({
  name: 'delete_github_app',
  text: 'DELETE FROM github_apps WHERE team_id = $1 AND uid = $2 RETURNING slug',
  row: { slug: text() },
});

/** The secrets of an App, except its private key. */
export interface AppSecrets {
  readonly webhookSecret: string;
  readonly clientSecret: string;
}

export type AppRow = RowOf<typeof readOne>;

/** The facts and secrets of a new App. */
export interface NewApp extends AppSecrets {
  /** Default: a new UID. */
  readonly uid?: string;
  readonly credentialId: string;
  readonly host: string;
  readonly appId: string;
  readonly slug: string;
  readonly clientId: string;
}

/** Returns the Apps of the team, oldest first. */
export const listApps = (db: Queryable, teamId: string): Promise<AppRow[]> => db.query(readAll, [teamId]);

/** Returns an App. `teamId`: only if the App belongs to this team. Null: there is no such App. */
export async function readApp(db: Queryable, uid: string, teamId?: string): Promise<AppRow | null> {
  const [found] = await db.query(readOne, [uid]);
  return found && (teamId === undefined || found.team_id === teamId) ? found : null;
}

/** Decrypts the secrets of an App. Throws if this process does not have their key. */
export function openSecrets(vault: Vault, app: Pick<AppRow, 'uid' | 'sealed_secrets'>): AppSecrets {
  return JSON.parse(vault.open(purposeOf(app.uid), app.sealed_secrets)) as AppSecrets;
}

/** `taken`: the team has this App already. `too_many`: the team has the maximum number of Apps. */
export async function insertApp(
  tx: Queryable,
  vault: Vault,
  by: Author,
  app: NewApp,
): Promise<AppRow | 'taken' | 'too_many'> {
  const { teamId } = by;
  await tx.query(lockTeam, [teamId]);
  const [room] = await tx.query(readRoom, [teamId, app.host, app.appId]);
  if ((room?.same ?? 0) > 0) return 'taken';
  if ((room?.count ?? 0) >= maxGithubApps) return 'too_many';
  const { uid = newUid() } = app;
  const secrets: AppSecrets = { webhookSecret: app.webhookSecret, clientSecret: app.clientSecret };
  const [made] = await tx.query(insert, [
    uid,
    teamId,
    app.credentialId,
    app.host,
    app.appId,
    app.slug,
    app.clientId,
    vault.keyId,
    vault.seal(purposeOf(uid), JSON.stringify(secrets)),
  ]);
  if (!made) throw new Error('the App was not inserted');
  const after = { host: app.host, app_id: app.appId, client_id: app.clientId, credential_id: app.credentialId };
  await recordChange(tx, by, {
    action: 'github_app.create',
    subject: { type: 'github_app', uid, name: app.slug },
    after,
  });
  return made;
}

/** Deletes an App with everything that belongs to it in this room. Returns false if the team has no such App. */
export async function removeApp(tx: Queryable, by: Author, uid: string): Promise<boolean> {
  const [gone] = await tx.query(remove, [by.teamId, uid]);
  if (!gone) return false;
  const subject = { type: 'github_app', uid, name: gone.slug };
  await recordChange(tx, by, { action: 'github_app.delete', subject, endsAccess: true });
  return true;
}

/** Returns the key with which the service acts as an App; null if the credential with the private key is gone or cannot be decrypted. */
export async function readAppKey(
  db: Queryable,
  vault: Vault,
  app: Pick<AppRow, 'uid' | 'credential_id' | 'app_id'>,
  host: GithubHost,
): Promise<GithubAppKey | null> {
  const open = await openAppCredential(db, vault, app.credential_id);
  return open && { uid: app.uid, appId: app.app_id, host, privateKey: open };
}
