/** Keeps the enabled webhooks that were read recently, with their decrypted secrets, in the memory of this process. */
import type { SignatureScheme } from '@runyard/contract/webhooks/signature-schemes/scheme';
import { schemeOf } from '@runyard/contract/webhooks/signature-schemes/schemes';
import type { WebhookRules } from '@runyard/contract/webhooks/webhook-rules';
import type { SignatureSchemeName, WebhookAuthMode } from '@runyard/contract/webhooks/webhooks';
import type { Vault } from '../../../platform/secrets/vault.ts';
import type { Database, Queryable } from '../../../platform/store/database/database.ts';
import {
  bytes,
  defineStatement,
  float,
  integer,
  json,
  nullable,
  type RowOf,
  text,
  uuid,
} from '../../../platform/store/database/statement.ts';
import { purposeOfSecret } from '../../../team/stored-secrets/sealed-rows.ts';
import { openWebhookSecret } from './secrets.ts';

/** Channel on which a trigger notifies all processes that a webhook was changed or deleted. The payload is the UID of the webhook. */
export const webhooksChannel = 'runyard_webhooks';

/** An enabled webhook. */
export interface KnownWebhook {
  readonly uid: string;
  readonly factoryUid: string;
  readonly teamId: string;
  readonly name: string;
  readonly authMode: WebhookAuthMode;
  readonly scheme: SignatureSchemeName | null;
  /** How the senders of the webhook sign: the scheme of the provider, or the scheme in the settings of the webhook. Null: they do not sign. */
  readonly sender: SignatureScheme | null;
  readonly rules: WebhookRules;
  readonly deliveryIdHeader: string | null;
  /** A delivery is written only if the webhook still has this version in the database. */
  readonly version: number;
  /** Returns the secrets that are accepted now. */
  secrets(): readonly string[];
  /** Until these times of `performance.now()`, the budget of the webhook allows no further delivery or rejection. */
  readonly fullUntil: { deliveries: number; rejections: number };
}

export interface WebhookDirectory {
  /** Returns an enabled webhook that the process has read recently; undefined if it has not. */
  known(uid: string): KnownWebhook | undefined;
  /**
   * Returns the enabled webhook; null: the webhook is unknown, disabled or deleted. A sender cannot distinguish these cases by the
   * time, because all need the same statements.
   */
  find(uid: string): Promise<KnownWebhook | null>;
  /** Removes the entry of a webhook, because the database has another version of the webhook. */
  forget(uid: string): void;
  close(): void;
}

const readEnabled = defineStatement({
  name: 'read_enabled_webhook',
  text: `
    SELECT w.uid, w.factory_uid, w.team_id::text AS team_id, w.name, w.auth_mode, w.signature_scheme, w.delivery_id_header, w.rules, w.version,
      w.sealed_secret, w.team_secret_id, s.sealed_value,
      CASE WHEN previous_secret_until > clock_timestamp() THEN previous_sealed_secret END AS previous_sealed_secret,
      extract(epoch FROM previous_secret_until - clock_timestamp())::float8 * 1000 AS previous_ms
    FROM webhooks w LEFT JOIN stored_secrets s ON s.id = w.team_secret_id WHERE w.uid = $1 AND w.enabled`,
  row: {
    uid: text(),
    factory_uid: text(),
    team_id: text(),
    name: text(),
    auth_mode: text<WebhookAuthMode>(),
    signature_scheme: nullable(text<SignatureSchemeName>()),
    delivery_id_header: nullable(text()),
    rules: json<WebhookRules>(),
    version: integer,
    sealed_secret: nullable(bytes),
    team_secret_id: nullable(uuid),
    sealed_value: nullable(bytes),
    previous_sealed_secret: nullable(bytes),
    previous_ms: nullable(float),
  },
});

/** Returns the current secret: the secret of the webhook itself, or the team's secret that the webhook uses. Empty: there is none. */
function currentSecrets(vault: Vault, row: RowOf<typeof readEnabled>): string[] {
  if (row.team_secret_id !== null && row.sealed_value !== null)
    return [vault.open(purposeOfSecret(row.team_secret_id), row.sealed_value)];
  return row.sealed_secret === null ? [] : [openWebhookSecret(vault, row.uid, row.sealed_secret)];
}

function toKnown(vault: Vault, row: RowOf<typeof readEnabled>, now: () => number): KnownWebhook {
  const current = currentSecrets(vault, row);
  const previous =
    row.previous_sealed_secret === null ? [] : [openWebhookSecret(vault, row.uid, row.previous_sealed_secret)];
  const previousUntil = now() + (row.previous_ms ?? 0);
  return {
    uid: row.uid,
    factoryUid: row.factory_uid,
    teamId: row.team_id,
    name: row.name,
    authMode: row.auth_mode,
    scheme: row.signature_scheme,
    sender: schemeOf(row.signature_scheme, row.rules),
    rules: row.rules,
    deliveryIdHeader: row.delivery_id_header,
    version: row.version,
    secrets: () => (now() < previousUntil ? [...current, ...previous] : current),
    fullUntil: { deliveries: 0, rejections: 0 },
  };
}

interface Entry {
  readonly webhook: KnownWebhook;
  readonly readAtMs: number;
}

const maxKnown = 10_000;
/**
 * An entry is used for this time. A notice reports a change within milliseconds, and no delivery is accepted with an old version. So
 * the limit matters only for a process that has lost its listening connection without an error: an old entry could make this process
 * answer 429.
 */
const knownMs = 5_000;

/**
 * Opens the directory. When any process changes a webhook, a notice removes the webhook from the directory. `now` returns milliseconds
 * of a clock that is never set back. With another clock, an old entry would be used until the clock has reached the earlier time
 * again.
 */
export async function openWebhookDirectory(
  db: Database,
  vault: Vault,
  now: () => number = () => performance.now(),
): Promise<WebhookDirectory> {
  const known = new Map<string, Entry>();
  const reads = new Map<string, Promise<KnownWebhook | null>>();
  // Counts the notices of changes. If a notice arrives while a row is read, the row may be old, so the directory does not keep it.
  let generation = 0;
  const forget = (uid?: string): void => {
    generation += 1;
    reads.clear();
    if (uid === undefined) known.clear();
    else known.delete(uid);
  };
  const stop = await db.listen(webhooksChannel, forget, () => forget());

  const read = async (uid: string, from: Queryable): Promise<KnownWebhook | null> => {
    const before = generation;
    const [row] = await from.query(readEnabled, [uid]);
    if (!row) return null;
    const webhook = toKnown(vault, row, now);
    if (before === generation) {
      if (known.size >= maxKnown) known.clear();
      known.set(uid, { webhook, readAtMs: now() });
    }
    return webhook;
  };

  const fresh = (uid: string): KnownWebhook | undefined => {
    const entry = known.get(uid);
    return entry && now() - entry.readAtMs < knownMs ? entry.webhook : undefined;
  };

  return {
    known: fresh,
    find: async (uid) => {
      const webhook = fresh(uid);
      if (webhook) return webhook;
      const running = reads.get(uid);
      if (running) return await running;
      const reading = read(uid, db);
      reads.set(uid, reading);
      try {
        return await reading;
      } finally {
        if (reads.get(uid) === reading) reads.delete(uid);
      }
    },
    forget,
    close: stop,
  };
}
