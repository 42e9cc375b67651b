/**
 * Stores encrypted copies of the values that the sandboxes of a run received, or that the gateway adds for the run. The values are redacted
 * in the output of the run.
 */
import { randomUUIDv7 } from 'node:crypto';
import type { DeletedDetail } from '../../platform/domain.ts';
import type { Vault } from '../../platform/secrets/vault.ts';
import type { Queryable } from '../../platform/store/database/database.ts';
import { bytes, defineStatement, json, text, uuid } from '../../platform/store/database/statement.ts';
import { isInSandbox, type RightToSecret } from '../access/contents/run-rights.ts';
import type { SealedValue } from '../redaction/agent-text.ts';
import { purposeOfRunSecret } from './sealed-rows.ts';

const readCopies = defineStatement({
  name: 'read_secrets_of_run',
  text: 'SELECT id, name, kind, sealed_value FROM run_secrets WHERE run_id = $1 ORDER BY id',
  row: { id: uuid, name: text(), kind: text<RunSecret['kind']>(), sealed_value: bytes },
});

/** The copies of a run's secrets, as JSON. */
export type SealedSecrets = readonly { readonly id: string; readonly sealed: string }[];

/** SQL: the copies of the run with the id `runId`, as `SealedSecrets`. */
export const sealedSecretsOf = (runId: string): string => `(
  SELECT coalesce(jsonb_agg(jsonb_build_object('id', c.id, 'sealed', encode(c.sealed_value, 'base64')) ORDER BY c.id), '[]')
  FROM run_secrets c WHERE c.run_id = ${runId})`;

/** Returns the copies in the form that a redactor needs. */
export const toSealedValues = (copies: SealedSecrets): SealedValue[] =>
  copies.map(({ id, sealed }) => ({ id, purpose: purposeOfRunSecret(id), sealed: Buffer.from(sealed, 'base64') }));

const readSealed = defineStatement({
  name: 'read_sealed_secrets_of_run',
  text: `SELECT ${sealedSecretsOf('$1::uuid')} AS copies`,
  row: { copies: json<SealedSecrets>() },
});

/** Returns all values that sandboxes of the run ever got, in the form that a redactor needs. */
export async function readGrantedSecrets(db: Queryable, runId: string): Promise<SealedValue[]> {
  const [row] = await db.query(readSealed, [runId]);
  return toSealedValues(row?.copies ?? []);
}

const insertCopy = defineStatement({
  name: 'insert_secret_of_run',
  text: 'INSERT INTO run_secrets (id, run_id, name, kind, vault_key_id, sealed_value) VALUES ($1, $2, $3, $4, $5, $6)',
  row: {},
});

const markUsed = defineStatement({
  name: 'mark_secrets_used',
  text: 'UPDATE stored_secrets SET last_used_at = clock_timestamp() WHERE id = ANY($1::uuid[])',
  row: {},
});

/** A value to remove from the output of the run. */
export interface RunSecret {
  readonly name: string;
  /**
   * `granted`: a stored secret with this name, which the agent gets; `configured`: another value in the sandbox, such as a secret of the
   * setup; `withheld`: a value that never reaches the sandbox.
   */
  readonly kind: 'granted' | 'configured' | 'withheld';
  readonly value: string;
}

/** Returns the copy of a secret that the run gets. */
export const copyOf = ({
  name,
  value,
  as,
  phase,
}: Pick<RightToSecret, 'name' | 'as' | 'phase'> & { readonly value: string }): RunSecret => ({
  name,
  value,
  kind: !isInSandbox({ as }) ? 'withheld' : phase === 'setup' ? 'configured' : 'granted',
});

/**
 * Returns all values that are removed from the output of the run. Throws if this process cannot decrypt one of these values, because then
 * the output cannot be redacted completely.
 */
export async function readRunSecrets(db: Queryable, vault: Vault, runId: string): Promise<RunSecret[]> {
  const rows = await db.query(readCopies, [runId]);
  return rows.map(({ id, name, kind, sealed_value }) => ({
    name,
    kind,
    value: vault.open(purposeOfRunSecret(id), sealed_value),
  }));
}

const readNames = defineStatement({
  name: 'read_names_of_run_secrets',
  text: "SELECT DISTINCT name FROM run_secrets WHERE run_id = $1 AND kind = 'granted'",
  row: { name: text() },
});

/** Returns the names of the secrets that sandboxes of the run got. */
export async function readGrantedNames(db: Queryable, runId: string): Promise<string[]> {
  return (await db.query(readNames, [runId])).map(({ name }) => name);
}

/**
 * Stores copies of values that a sandbox of the run will receive, or that the gateway will add to requests of the sandbox. The transaction
 * must be committed before the sandbox receives a value. The caller has locked the run. So if two requests of the run's agent are
 * concurrent, the later request sees the copies of the earlier request. `usedIds`: ids of the stored secrets among the values.
 */
export async function keepRunSecrets(
  tx: Queryable,
  vault: Vault,
  runId: string,
  secrets: readonly RunSecret[],
  usedIds: readonly string[],
): Promise<void> {
  if (secrets.length === 0) return;
  const copies = await readRunSecrets(tx, vault, runId);
  for (const secret of secrets) {
    const { name, kind, value } = secret;
    if (copies.some((copy) => copy.name === name && copy.kind === kind && copy.value === value)) continue;
    copies.push(secret);
    const id = randomUUIDv7();
    await tx.query(insertCopy, [id, runId, name, kind, vault.keyId, vault.seal(purposeOfRunSecret(id), value)]);
  }
  await tx.query(markUsed, [usedIds]);
}

const deleteCopies = defineStatement({
  name: 'delete_secrets_of_runs',
  text: 'DELETE FROM run_secrets WHERE run_id = ANY($1::uuid[])',
  row: {},
});

/** Deletes the copies of secret values of these runs. */
export async function deleteRunSecrets(tx: Queryable, runIds: readonly string[]): Promise<DeletedDetail> {
  await tx.query(deleteCopies, [runIds]);
  return { blobKeys: [], isDone: true };
}
