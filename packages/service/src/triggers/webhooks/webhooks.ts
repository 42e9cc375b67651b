/** Creates, reads and deletes the webhooks of factories. */
import { maxFactoryWebhooks } from '@runyard/contract/limits';
import type { WebhookRules } from '@runyard/contract/webhooks/webhook-rules';
import type {
  CreateWebhookRequest,
  SignatureSchemeName,
  Webhook,
  WebhookAuthMode,
} from '@runyard/contract/webhooks/webhooks';
import type { Fault } from '../../platform/fault.ts';
import type { Vault } from '../../platform/secrets/vault.ts';
import type { Queryable } from '../../platform/store/database/database.ts';
import {
  boolean,
  defineStatement,
  integer,
  json,
  nullable,
  type RowOf,
  text,
  timestamp,
  uuid,
} from '../../platform/store/database/statement.ts';
import { type Author, recordChange, type State } from '../../team/access/audit/record.ts';
import { newUid } from '../../team/access/teams/uid.ts';
import { findTeamSecret, type TeamSecret } from '../../team/stored-secrets/find-usable.ts';
import { lockFactory } from '../factories/factories.ts';
import {
  type Authentication,
  isMadeByProvider,
  newWebhookSecret,
  sealWebhookSecret,
  secretFault,
} from './ingest/secrets.ts';

/** The ids that name a webhook in a request of its team. */
export interface WebhookAddress {
  readonly teamId: string;
  readonly factoryUid: string;
  readonly webhookUid: string;
}

/** Columns of a webhook, without its secret. */
export const webhookRow = {
  uid: text(),
  name: text(),
  auth_mode: text<WebhookAuthMode>(),
  signature_scheme: nullable(text<SignatureSchemeName>()),
  secret_name: text(),
  delivery_id_header: nullable(text()),
  rules: json<WebhookRules>(),
  enabled: boolean,
  disabled_reason: nullable(text()),
  team_secret_id: nullable(uuid),
  created_at: timestamp,
};

export const webhookColumns = Object.keys(webhookRow).join(', ');

const readAll = defineStatement({
  name: 'read_webhooks_of_factory',
  text: `SELECT ${webhookColumns} FROM webhooks WHERE team_id = $1 AND factory_uid = $2 ORDER BY created_at, uid`,
  row: webhookRow,
});

const readSending = defineStatement({
  name: 'read_webhooks_of_factories',
  text: `
    SELECT uid, factory_uid, signature_scheme, enabled FROM webhooks WHERE team_id = $1 AND factory_uid = ANY ($2::text[])`,
  row: { uid: text(), factory_uid: text(), signature_scheme: webhookRow.signature_scheme, enabled: boolean },
});

/** The members of a webhook that decide whether automations get its deliveries. */
export type SendingWebhook = RowOf<typeof readSending>;

const readOne = defineStatement({
  name: 'read_webhook',
  text: `SELECT ${webhookColumns} FROM webhooks WHERE team_id = $1 AND factory_uid = $2 AND uid = $3`,
  row: webhookRow,
});

const countOfFactory = defineStatement({
  name: 'count_webhooks_of_factory',
  text: 'SELECT count(*) AS count FROM webhooks WHERE factory_uid = $1',
  row: { count: integer },
});

const insert = defineStatement({
  name: 'insert_webhook',
  text: `
    INSERT INTO webhooks (uid, factory_uid, team_id, name, auth_mode, signature_scheme, secret_name, delivery_id_header,
      enabled, vault_key_id, sealed_secret, team_secret_id, rules)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13) RETURNING ${webhookColumns}`,
  row: webhookRow,
});

/** Deletes a webhook. A trigger notifies all processes that accept deliveries. The nightly sweep deletes the log. */
const remove = defineStatement({
  name: 'delete_webhook',
  text: 'DELETE FROM webhooks WHERE team_id = $1 AND factory_uid = $2 AND uid = $3 RETURNING name',
  row: { name: text() },
});

/** A webhook without its URL, which depends on the address of the service. */
export type StoredWebhook = Omit<Webhook, 'url'>;

/** A webhook with its encrypted secret as base64. `sealedSecret`: null if the webhook has no secret yet or uses a secret of the team. */
export interface SealedWebhook {
  readonly webhook: StoredWebhook;
  readonly sealedSecret: string | null;
}

export const toWebhook = (found: RowOf<typeof readOne>): StoredWebhook => ({
  uid: found.uid,
  name: found.name,
  auth_mode: found.auth_mode,
  ...(found.signature_scheme === null ? {} : { signature_scheme: found.signature_scheme }),
  secret_name: found.secret_name,
  ...(found.delivery_id_header === null ? {} : { delivery_id_header: found.delivery_id_header }),
  ...found.rules,
  ...(found.team_secret_id === null ? {} : { secret_of_team: true }),
  enabled: found.enabled,
  ...(found.disabled_reason === null ? {} : { disabled_reason: found.disabled_reason }),
  created_at: found.created_at,
});

/** The rules of a webhook as a request sets them. Null: the default. */
type RequestedRules = { readonly [K in keyof WebhookRules]?: WebhookRules[K] | null | undefined };

/** Returns the rules that a webhook has after a request. Members that the request does not contain stay the same. */
export function rulesOf(present: WebhookRules, request: RequestedRules): WebhookRules {
  const { delivery_id_path, event_header, duplicate_window_seconds, signature } = { ...present, ...defined(request) };
  const rules = { delivery_id_path, event_header: event_header?.toLowerCase(), duplicate_window_seconds, signature };
  return Object.fromEntries(Object.entries(rules).filter(([, value]) => value != null));
}

const defined = (request: RequestedRules): RequestedRules =>
  Object.fromEntries(Object.entries(request).filter(([, value]) => value !== undefined));

/** Returns the members with which the audit log names a webhook. */
export const subjectOf = ({ uid, name }: Pick<StoredWebhook, 'uid' | 'name'>) => ({ type: 'webhook', uid, name });

/** Returns the members of a webhook that the audit log shows. */
export const stateOf = ({ uid: _uid, created_at: _created, ...state }: StoredWebhook): State => state;

/**
 * Returns the URL to which senders send their POST requests. `token`: the secret, for a webhook with the mode url_token; absent: the
 * URL contains a placeholder.
 */
export function webhookUrl(baseUrl: string, { uid, auth_mode }: StoredWebhook, token = '{token}'): string {
  return `${baseUrl}/webhooks/w/${uid}${auth_mode === 'url_token' ? `/${token}` : ''}`;
}

/** The refusal (400) of a request that names or contains a secret which the webhook cannot use. */
export interface BadSecret {
  readonly kind: 'bad_secret';
  readonly fault: Fault;
}

export const badSecret = (path: string, message: string): BadSecret => ({
  kind: 'bad_secret',
  fault: { path, message },
});

/** Finds the secret of the team with this name, and checks that the webhook can use it. Returns null if the team has no secret with this name. */
export async function findFittingSecret(
  tx: Queryable,
  vault: Vault,
  teamId: string,
  name: string,
  webhook: Authentication,
): Promise<TeamSecret | BadSecret | null> {
  const found = await findTeamSecret(tx, vault, teamId, name);
  if (found === null) return null;
  if (found === 'unreadable')
    return badSecret(
      'secret_name',
      `the secret ${name} of the team cannot be opened; set it again with PUT /secrets/${name}`,
    );
  const fault = secretFault(webhook, found.value);
  return fault === null ? found : badSecret('secret_name', `the value of the secret ${name} of the team ${fault}`);
}

/** Returns the webhooks of a factory, oldest first. */
export async function listWebhooks(db: Queryable, teamId: string, factoryUid: string): Promise<StoredWebhook[]> {
  return (await db.query(readAll, [teamId, factoryUid])).map(toWebhook);
}

/** Returns the webhooks of factories of the team, in no particular order. */
export const readSendingWebhooks = (
  db: Queryable,
  teamId: string,
  factoryUids: readonly string[],
): Promise<SendingWebhook[]> => db.query(readSending, [teamId, factoryUids]);

/** Returns a webhook; null if the team has no webhook with these UIDs. */
export async function readWebhook(db: Queryable, address: WebhookAddress): Promise<StoredWebhook | null> {
  const [found] = await db.query(readOne, [address.teamId, address.factoryUid, address.webhookUid]);
  return found ? toWebhook(found) : null;
}

/**
 * Creates a webhook. It uses the secret of the team that the request names, or the secret in the request, or a new secret. If only the
 * provider can make the secret and the request has none, the webhook is disabled until it gets the secret. `no_factory`: the team has
 * no such factory. `too_many`: the factory already has the largest number of webhooks that is allowed.
 */
export async function createWebhook(
  tx: Queryable,
  vault: Vault,
  by: Author,
  factoryUid: string,
  request: CreateWebhookRequest,
): Promise<SealedWebhook | 'no_factory' | 'too_many' | BadSecret> {
  const { teamId } = by;
  if (!(await lockFactory(tx, teamId, factoryUid))) return 'no_factory';
  const [others] = await tx.query(countOfFactory, [factoryUid]);
  if ((others?.count ?? 0) >= maxFactoryWebhooks) return 'too_many';
  const uid = newUid();
  const named = request.secret_name;
  const ofTeam = named === undefined ? null : await findFittingSecret(tx, vault, teamId, named, request);
  if (ofTeam && 'kind' in ofTeam) return ofTeam;
  if (ofTeam && request.secret !== undefined && request.secret !== ofTeam.value)
    return badSecret(
      'secret',
      `is not the value of the secret ${named} of the team; leave it out, or choose another secret_name`,
    );
  const own = request.secret ?? (isMadeByProvider(request) ? null : newWebhookSecret(request));
  const secret = ofTeam ? null : own;
  const sealed = secret === null ? null : sealWebhookSecret(vault, uid, secret);
  const [made] = await tx.query(insert, [
    uid,
    factoryUid,
    teamId,
    request.name,
    request.auth_mode,
    request.signature_scheme ?? null,
    request.secret_name ?? `WEBHOOK_${uid}`,
    request.delivery_id_header?.toLowerCase() ?? null,
    request.enabled && (sealed !== null || ofTeam !== null),
    sealed === null ? null : vault.keyId,
    sealed,
    ofTeam?.id ?? null,
    JSON.stringify(rulesOf({}, request)),
  ]);
  if (!made) throw new Error('the webhook was not inserted');
  const webhook = toWebhook(made);
  await recordChange(tx, by, { action: 'webhook.create', subject: subjectOf(webhook), after: stateOf(webhook) });
  return { webhook, sealedSecret: sealed?.toString('base64') ?? null };
}

/** Deletes a webhook. Returns false if the team has no webhook with these UIDs. */
export async function deleteWebhook(tx: Queryable, by: Author, address: WebhookAddress): Promise<boolean> {
  const { teamId, factoryUid, webhookUid: uid } = address;
  const [gone] = await tx.query(remove, [teamId, factoryUid, uid]);
  if (!gone) return false;
  const subject = subjectOf({ uid, name: gone.name });
  await recordChange(tx, by, { action: 'webhook.delete', subject, endsAccess: true });
  return true;
}
