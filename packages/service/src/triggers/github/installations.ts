/** Stores the installations of Apps that teams have claimed. Each has a webhook in a factory, whose log shows its events. */
import { randomBytes } from 'node:crypto';
import { maxGithubInstallations } from '@runyard/contract/limits';
import type { GithubInstallation } from '@runyard/contract/team/github';
import type { Vault } from '../../platform/secrets/vault.ts';
import type { Queryable } from '../../platform/store/database/database.ts';
import {
  boolean,
  defineStatement,
  integer,
  type RowOf,
  text,
  timestamp,
  uuid,
} from '../../platform/store/database/statement.ts';
import { createChannelSubscription, deleteChannelSubscription } from '../../runs/subscriptions/channels.ts';
import { type Author, recordChange } from '../../team/access/audit/record.ts';
import { newUid } from '../../team/access/teams/uid.ts';
import { createWebhook, deleteWebhook } from '../webhooks/webhooks.ts';

const row = {
  uid: text(),
  app_uid: text(),
  team_id: uuid,
  installation_id: text(),
  account_id: integer,
  account_login: text(),
  account_type: text(),
  webhook_uid: text(),
  factory_uid: text(),
  subscription_id: uuid,
  is_suspended: boolean,
  created_at: timestamp,
};
const columns = Object.keys(row)
  .map((name) => (name === 'installation_id' ? 'i.installation_id::text AS installation_id' : `i.${name}`))
  .join(', ');

export type InstallationRow = RowOf<typeof readAll>;

const readAll = defineStatement({
  name: 'read_github_installations_of_team',
  text: `SELECT ${columns} FROM github_installations i WHERE i.team_id = $1 ORDER BY i.created_at, i.uid`,
  row,
});

const findOne = defineStatement({
  name: 'find_github_installation',
  text: `SELECT ${columns} FROM github_installations i WHERE i.app_uid = $1 AND i.installation_id = $2::bigint`,
  row,
});

const lockOne = defineStatement({
  name: 'lock_github_installation',
  text: `SELECT ${columns} FROM github_installations i WHERE i.team_id = $1 AND i.uid = $2 FOR UPDATE`,
  row,
});

const insert = defineStatement({
  name: 'insert_github_installation',
  text: `
    INSERT INTO github_installations AS i (uid, app_uid, team_id, installation_id, account_id, account_login, account_type, webhook_uid,
      factory_uid, subscription_id, claimed_by)
    VALUES ($1, $2, $3, $4::bigint, $5, $6, $7, $8, $9, $10, $11)
    ON CONFLICT (app_uid, installation_id) DO NOTHING RETURNING ${columns}`,
  row,
});

const suspend = defineStatement({
  name: 'suspend_github_installation',
  text: `
    UPDATE github_installations SET is_suspended = $3, account_login = coalesce($4, account_login)
    WHERE app_uid = $1 AND installation_id = $2::bigint`,
  row: {},
});

export const toInstallation = (found: InstallationRow): GithubInstallation => ({
  uid: found.uid,
  installation_id: found.installation_id,
  account: { id: found.account_id, login: found.account_login, type: found.account_type },
  factory_uid: found.factory_uid,
  webhook_uid: found.webhook_uid,
  is_suspended: found.is_suspended,
  created_at: found.created_at,
});

export const listInstallations = (db: Queryable, teamId: string): Promise<InstallationRow[]> =>
  db.query(readAll, [teamId]);

/** Returns the claimed installation of an App by GitHub's number; null: no team has claimed it. */
export const findInstallation = async (
  db: Queryable,
  appUid: string,
  installationId: string,
): Promise<InstallationRow | null> => (await db.query(findOne, [appUid, installationId]))[0] ?? null;

/** An installation that a person has proved to administer. */
export interface ProvedInstallation {
  readonly appUid: string;
  readonly installationId: string;
  readonly account: { readonly id: number; readonly login: string; readonly type: string };
  readonly factoryUid: string;
}

/** `claimed`: a team has claimed the installation already. `no_factory`: the team has no such factory. */
export type ClaimRefusal = 'claimed' | 'no_factory' | 'too_many' | 'too_many_webhooks';

/** Thrown if the installation was claimed at the same time. The transaction must be rolled back. */
export class ClaimedMeanwhile extends Error {}

/** Claims an installation for the author's team, with a webhook in the factory. */
export async function claimInstallation(
  tx: Queryable,
  vault: Vault,
  by: Author,
  { appUid, installationId, account, factoryUid }: ProvedInstallation,
): Promise<InstallationRow | ClaimRefusal> {
  const { teamId } = by;
  if (await findInstallation(tx, appUid, installationId)) return 'claimed';
  if ((await listInstallations(tx, teamId)).length >= maxGithubInstallations) return 'too_many';
  const webhook = await createWebhook(tx, vault, by, factoryUid, {
    name: `GitHub ${account.login}`.slice(0, 100),
    auth_mode: 'signature',
    signature_scheme: 'github',
    // No sender has this secret: events of the installation arrive at the route of its App, which checks the signature of the App.
    secret: randomBytes(32).toString('base64url'),
    enabled: true,
  });
  if (webhook === 'no_factory') return 'no_factory';
  if (webhook === 'too_many') return 'too_many_webhooks';
  if ('kind' in webhook) throw new Error('the secret of the webhook was refused');
  const webhookUid = webhook.webhook.uid;
  const metadata = { webhook_uid: webhookUid };
  const subscriptionId = await createChannelSubscription(tx, vault, { teamId, channel: 'github', metadata });
  const uid = newUid();
  const [made] = await tx.query(insert, [
    uid,
    appUid,
    teamId,
    installationId,
    account.id,
    account.login,
    account.type,
    webhookUid,
    factoryUid,
    subscriptionId,
    by.creator.uid,
  ]);
  if (!made) throw new ClaimedMeanwhile();
  const subject = { type: 'github_installation', uid, name: account.login };
  const after = { installation_id: installationId, account_id: account.id, factory_uid: factoryUid };
  await recordChange(tx, by, { action: 'github_installation.claim', subject, after });
  return made;
}

/** Gives an installation back. The webhook with its log, and the subscription, are deleted. Returns false if the team has no such one. */
export async function releaseInstallation(tx: Queryable, by: Author, uid: string): Promise<boolean> {
  const [found] = await tx.query(lockOne, [by.teamId, uid]);
  if (!found) return false;
  await deleteChannelSubscription(tx, found.subscription_id);
  const { team_id: teamId, factory_uid: factoryUid, webhook_uid: webhookUid } = found;
  // The row of the installation refers to the webhook, so it is deleted with it.
  await deleteWebhook(tx, by, { teamId, factoryUid, webhookUid });
  const subject = { type: 'github_installation', uid, name: found.account_login };
  await recordChange(tx, by, { action: 'github_installation.release', subject, endsAccess: true });
  return true;
}

/** Records that the account has suspended or resumed the installation, and its present name. */
export async function noteSuspension(
  db: Queryable,
  appUid: string,
  installationId: string,
  { isSuspended, login }: { readonly isSuspended: boolean; readonly login: string | null },
): Promise<void> {
  await db.query(suspend, [appUid, installationId, isSuspended, login]);
}

const findOfSubscription = defineStatement({
  name: 'find_github_installation_of_subscription',
  text: `SELECT ${columns} FROM github_installations i WHERE i.subscription_id = $1`,
  row,
});

/** Returns the installation to which a subscription reports; null: it was released. */
export const findInstallationOf = async (db: Queryable, subscriptionId: string): Promise<InstallationRow | null> =>
  (await db.query(findOfSubscription, [subscriptionId]))[0] ?? null;

const findOfOwner = defineStatement({
  name: 'find_github_installation_of_owner',
  text: `
    SELECT ${columns} FROM github_installations i JOIN github_apps a ON a.uid = i.app_uid
    WHERE i.team_id = $1 AND a.host = $2 AND lower(i.account_login) = lower($3) AND NOT i.is_suspended ORDER BY i.created_at LIMIT 1`,
  row,
});

/** Returns the installation of the team that has the repositories of this owner; null: there is none. */
export const findInstallationOfOwner = async (
  db: Queryable,
  teamId: string,
  host: string,
  owner: string,
): Promise<InstallationRow | null> => (await db.query(findOfOwner, [teamId, host, owner]))[0] ?? null;
