/** Creates the bootstrap key. `runyard up` prints this key, and the CLI and the worker use it if they have no other key. */
import { randomUUIDv7 } from 'node:crypto';
import path from 'node:path';
import { lockInstallation, setBootstrapped } from '../../../platform/installation/installation.ts';
import type { Database, Queryable } from '../../../platform/store/database/database.ts';
import { boolean, defineStatement, nullable, uuid } from '../../../platform/store/database/statement.ts';
import { createSecretFile, readSecretFile, replaceSecretFile } from '../../../platform/store/secret-file.ts';
import { newUid } from '../teams/uid.ts';
import { hashKey, keysChannel, newRawKey, shownParts } from './key.ts';

/** A team and its owner. */
interface FirstTeam {
  readonly teamId: string;
  readonly userId: string;
}

const readFirstTeam = defineStatement({
  name: 'read_first_team',
  text: `
    SELECT m.team_id, m.user_id FROM team_members m JOIN teams t ON t.id = m.team_id JOIN users u ON u.id = m.user_id
    WHERE m.role = 'owner' ORDER BY t.number, u.number LIMIT 1`,
  row: { team_id: uuid, user_id: uuid },
});

/** Returns the oldest team with its oldest owner; creates both if they do not exist. The caller must hold a lock. */
async function ensureFirstTeam(tx: Queryable): Promise<FirstTeam> {
  const [known] = await tx.query(readFirstTeam);
  if (known) return { teamId: known.team_id, userId: known.user_id };
  const team = { teamId: randomUUIDv7(), userId: randomUUIDv7() };
  await tx.query(`INSERT INTO teams (id, uid, name) VALUES ($1, $2, 'Default team')`, [team.teamId, newUid()]);
  await tx.query(`INSERT INTO users (id, uid, display_name) VALUES ($1, $2, 'Administrator')`, [team.userId, newUid()]);
  await tx.query(`INSERT INTO team_members (team_id, user_id, role) VALUES ($1, $2, 'owner')`, [
    team.teamId,
    team.userId,
  ]);
  return team;
}

/**
 * `kept_elsewhere`: the bootstrap key of the database already exists, but is neither in the setting nor in the data folder; or it was
 * deleted. `stale_file`: the data folder has another key, which does not work. `worker_key_taken`: the worker key of the setting is another
 * key.
 */
export type BootstrapResult =
  | { readonly kind: 'ready'; readonly key: string; readonly from: 'setting' | 'file' | 'generated' }
  | { readonly kind: 'kept_elsewhere' | 'stale_file' | 'worker_key_taken' };

export interface BootstrapOptions {
  readonly dataDir: string;
  /** RUNYARD_BOOTSTRAP_KEY */
  readonly key: string | undefined;
  /** RUNYARD_WORKER_KEY */
  readonly workerKey?: string | undefined;
}

const keyName = 'bootstrap';
const fileName = 'bootstrap-key';
const lockBootstrap = `SELECT pg_advisory_xact_lock(hashtext('runyard bootstrap'))`;

const readBootstrapKeys = defineStatement({
  name: 'read_bootstrap_keys',
  text: 'SELECT id, hash = $2 AS same FROM api_keys WHERE is_operator AND name = $1',
  row: { id: uuid, same: nullable(boolean) },
});

async function replaceBootstrapKey(tx: Queryable, key: string): Promise<void> {
  const hash = hashKey(key);
  const { teamId, userId } = await ensureFirstTeam(tx);
  const old = await tx.query(readBootstrapKeys, [keyName, hash]);
  if (old.length === 1 && old[0]?.same) return;
  await tx.query('DELETE FROM api_keys WHERE is_operator AND name = $1', [keyName]);
  const { prefix, lastFour } = shownParts(key);
  // If a key with the same text already exists, this key becomes the bootstrap key.
  await tx.query(
    `INSERT INTO api_keys (id, hash, kind, name, team_id, user_id, is_operator, prefix, last_four)
     VALUES ($1, $2, 'personal', $3, $4, $5, true, $6, $7)
     ON CONFLICT (hash) DO UPDATE SET kind = 'personal', name = excluded.name, team_id = excluded.team_id,
       user_id = excluded.user_id, agent_uid = NULL, is_operator = true, expires_at = NULL, minted_by = NULL, signed_on_by = NULL, passkey_id = NULL`,
    [randomUUIDv7(), hash, keyName, teamId, userId, prefix, lastFour],
  );
  await tx.query('SELECT pg_notify($1, $2)', [keysChannel, '']);
}

/** Returns the operator's key, and creates it at the first start. The caller must hold a lock. */
async function ensureOperatorKey(
  tx: Queryable,
  { dataDir, key: ofSetting }: BootstrapOptions,
): Promise<BootstrapResult> {
  const file = path.join(dataDir, fileName);
  const { isBootstrapped } = await lockInstallation(tx);
  if (ofSetting !== undefined) {
    await replaceBootstrapKey(tx, ofSetting);
    await setBootstrapped(tx);
    return { kind: 'ready', key: ofSetting, from: 'setting' };
  }
  const storedKey = await readSecretFile(file);
  const known = await tx.query(readBootstrapKeys, [keyName, storedKey === undefined ? null : hashKey(storedKey)]);
  if (isBootstrapped || known.length > 0) {
    await setBootstrapped(tx);
    if (storedKey === undefined) return { kind: 'kept_elsewhere' };
    return known.some(({ same }) => same) ? { kind: 'ready', key: storedKey, from: 'file' } : { kind: 'stale_file' };
  }
  // If the file already exists, use its key: a process was killed after it had written the file and before it committed.
  const key = storedKey ?? (await createSecretFile(file, newRawKey()));
  await replaceBootstrapKey(tx, key);
  await setBootstrapped(tx);
  return { kind: 'ready', key, from: storedKey === undefined ? 'generated' : 'file' };
}

/** SQL: the key is a worker key that was not created through the API. */
const isOfSetting = `kind = 'worker' AND created_by_uid IS NULL`;

const readWorkerKey = defineStatement({
  name: 'read_worker_key_of_setting',
  text: `SELECT kind = 'worker' AS is_worker FROM api_keys WHERE hash = $1`,
  row: { is_worker: boolean },
});

/** Replaces the worker key of an earlier setting. Returns false if the new key already exists with other rights. */
async function putWorkerKey(tx: Queryable, key: string): Promise<boolean> {
  const hash = hashKey(key);
  const [known] = await tx.query(readWorkerKey, [hash]);
  if (known) return known.is_worker;
  const { teamId } = await ensureFirstTeam(tx);
  const { prefix, lastFour } = shownParts(key);
  await tx.query(`DELETE FROM api_keys WHERE ${isOfSetting}`);
  await tx.query(
    `INSERT INTO api_keys (id, hash, kind, name, team_id, prefix, last_four) VALUES ($1, $2, 'worker', $3, $4, $5, $6)`,
    [randomUUIDv7(), hash, 'RUNYARD_WORKER_KEY', teamId, prefix, lastFour],
  );
  await tx.query('SELECT pg_notify($1, $2)', [keysChannel, '']);
  return true;
}

/**
 * Creates the first team, the team's administrator and the bootstrap key, once for each database. The key comes from the setting, or else
 * from the data folder. If neither has a key, a new key is made and stored in the data folder with mode 0600. Later only the setting
 * replaces the key, so a deleted key does not come back from a file. The worker key in RUNYARD_WORKER_KEY replaces the worker key that
 * this setting had before, and stays valid when the setting is removed. Any number of processes may call this function at once.
 */
export async function bootstrap(db: Database, options: BootstrapOptions): Promise<BootstrapResult> {
  return await db.transaction(async (tx) => {
    await tx.query(lockBootstrap);
    const result = await ensureOperatorKey(tx, options);
    // Store the worker key after the operator's key, because both keys might have the same text.
    const isPut = options.workerKey === undefined || (await putWorkerKey(tx, options.workerKey));
    return isPut ? result : { kind: 'worker_key_taken' };
  });
}

/**
 * Replaces the operator's key by a new key in the data folder, and returns the new key. The old key stops working. The caller needs no key,
 * but must be able to read and write the data folder and the database. If the process is killed before the end, call this function again.
 */
export async function replaceOperatorKey(db: Database, dataDir: string): Promise<string> {
  const key = newRawKey();
  await db.transaction(async (tx) => {
    await tx.query(lockBootstrap);
    await lockInstallation(tx);
    await replaceBootstrapKey(tx, key);
    await setBootstrapped(tx);
  });
  await replaceSecretFile(path.join(dataDir, fileName), key);
  return key;
}
