/** Creates, checks, encrypts and reads the secrets of webhooks. Only this file reads and writes the stored secret of a webhook. */
import { randomBytes } from 'node:crypto';
import type { SignatureSchemeName, WebhookAuthMode } from '@runyard/contract/webhooks/webhooks';
import { defineSealedRows } from '../../../platform/secrets/seal-again.ts';
import type { Vault } from '../../../platform/secrets/vault.ts';
import type { Queryable } from '../../../platform/store/database/database.ts';
import {
  bytes,
  defineStatement,
  nullable,
  type RowOf,
  text,
  uuid,
} from '../../../platform/store/database/statement.ts';
import { purposeOfSecret } from '../../../team/stored-secrets/sealed-rows.ts';

/** The members of a webhook that define how its senders authenticate. */
export interface Authentication {
  readonly auth_mode: WebhookAuthMode;
  readonly signature_scheme?: SignatureSchemeName | undefined;
}

const minTokenLength = 16;
/** The characters that a URL may contain without escapes (RFC 3986, 2.3). */
const urlSafe = /^[A-Za-z0-9._~-]+$/;
/** The characters that a token may contain: all that a header can contain. RFC 6750, 2.1 allows fewer, but not all senders follow it. */
const printable = /^[\x21-\x7e]+$/;

/** Returns whether the provider creates the secret of the webhook. If so, the service cannot make it, and a person must enter it. */
export const isMadeByProvider = ({ auth_mode, signature_scheme }: Authentication): boolean =>
  auth_mode === 'signature' && signature_scheme !== 'standard_webhooks';

/** Creates a secret of 256 random bits, in the form that the authentication mode needs. */
export const newWebhookSecret = ({ auth_mode }: Authentication): string =>
  auth_mode === 'signature' ? `whsec_${randomBytes(32).toString('base64')}` : randomBytes(32).toString('base64url');

/** Returns why a secret cannot be used with the authentication mode; null if it can. */
export function secretFault({ auth_mode, signature_scheme }: Authentication, secret: string): string | null {
  if (auth_mode === 'signature') {
    if (signature_scheme === 'gitlab') return printable.test(secret) ? null : 'must be printable ASCII without spaces';
    if (signature_scheme !== 'standard_webhooks') return null;
    const text = secret.replace(/^whsec_/, '');
    const bytes = Buffer.from(text, 'base64');
    const isBase64 = bytes.toString('base64').replace(/=+$/, '') === text.replace(/=+$/, '');
    return isBase64 && bytes.length >= minTokenLength
      ? null
      : `must be at least ${minTokenLength} bytes in base64, after whsec_ or without it`;
  }
  if (secret.length < minTokenLength) return `must have at least ${minTokenLength} characters`;
  if (auth_mode === 'token') return printable.test(secret) ? null : 'must be printable ASCII without spaces';
  if (secret.length > 200) return 'must have at most 200 characters';
  return urlSafe.test(secret) ? null : 'must be URL-safe: only characters of [A-Za-z0-9._~-]';
}

/**
 * Returns the `purpose` with which the secret of a webhook is encrypted. It contains the UID, so an encrypted secret that is copied to
 * another webhook cannot be decrypted there.
 */
export const sealPurpose = (uid: string): string => `webhook ${uid}`;

/** Encrypts the secret of a webhook. */
export const sealWebhookSecret = (vault: Vault, uid: string, secret: string): Buffer =>
  vault.seal(sealPurpose(uid), secret);

/** Decrypts the secret of a webhook. If the secret was encrypted with a key that is missing here, throws an error that names only the webhook. */
export function openWebhookSecret(vault: Vault, uid: string, sealed: Buffer): string {
  try {
    return vault.open(sealPurpose(uid), sealed);
  } catch {
    throw new Error(`the secret of the webhook ${uid} was sealed with another key: rotate it`);
  }
}

/** The statements that encrypt the secrets of webhooks again: the current secret, and the previous secret while it is still accepted. */
export const sealedWebhooks = defineSealedRows({
  table: 'webhooks',
  id: 'uid',
  sealed: 'sealed_secret',
  earlier: { sealed: 'previous_sealed_secret', until: 'previous_secret_until' },
  // Because of the new version, all processes read the webhook again.
  alsoSets: 'version = version + 1',
  purpose: sealPurpose,
});

const readSealed = defineStatement({
  name: 'read_sealed_secrets_of_webhooks',
  text: `
    SELECT w.uid, w.sealed_secret, s.id AS team_secret_id, s.sealed_value FROM webhooks w
    LEFT JOIN stored_secrets s ON s.id = w.team_secret_id WHERE w.team_id = $1 AND w.factory_uid = $2`,
  row: { uid: text(), sealed_secret: nullable(bytes), team_secret_id: nullable(uuid), sealed_value: nullable(bytes) },
});

type Row = RowOf<typeof readSealed>;

/**
 * Returns the secrets of the webhooks of a factory, by the UID of the webhook. Null: the webhook has no secret, or the secret cannot
 * be decrypted.
 */
export async function readWebhookSecrets(
  db: Queryable,
  vault: Vault,
  { teamId, factoryUid }: { readonly teamId: string; readonly factoryUid: string },
): Promise<ReadonlyMap<string, string | null>> {
  const open = ({ uid, sealed_secret: own, team_secret_id: id, sealed_value: ofTeam }: Row): string | null => {
    try {
      if (id !== null && ofTeam !== null) return vault.open(purposeOfSecret(id), ofTeam);
      return own && openWebhookSecret(vault, uid, own);
    } catch {
      return null;
    }
  };
  const rows = await db.query(readSealed, [teamId, factoryUid]);
  return new Map(rows.map((row) => [row.uid, open(row)]));
}

const readUsers = defineStatement({
  name: 'read_webhooks_of_secret',
  text: `
    SELECT w.name, w.auth_mode, w.signature_scheme FROM webhooks w JOIN stored_secrets s ON s.id = w.team_secret_id
    WHERE s.team_id = $1 AND s.owner_uid IS NULL AND s.name = $2 ORDER BY w.uid`,
  row: { name: text(), auth_mode: text<WebhookAuthMode>(), signature_scheme: nullable(text<SignatureSchemeName>()) },
});

/**
 * Returns why a secret of the team cannot get this value: a webhook that uses the secret needs another form. Returns null if it can.
 */
export async function faultOfWebhookSecret(
  db: Queryable,
  teamId: string,
  name: string,
  value: string,
): Promise<string | null> {
  for (const webhook of await db.query(readUsers, [teamId, name])) {
    const { auth_mode, signature_scheme: scheme } = webhook;
    const fault = secretFault({ auth_mode, ...(scheme === null ? {} : { signature_scheme: scheme }) }, value);
    if (fault !== null) return `${fault}: the webhook ${JSON.stringify(webhook.name)} uses it as ${auth_mode}`;
  }
  return null;
}
