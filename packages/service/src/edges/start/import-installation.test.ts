import { randomBytes } from 'node:crypto';
import { copyFile, mkdir, rm } from 'node:fs/promises';
import path from 'node:path';
import { Readable } from 'node:stream';
import pg from 'pg';
import { beforeEach, expect, test } from 'vitest';
import { newFolder } from '../../../../../test/support/close-at-end.ts';
import { createEmptyDatabase, createTestDatabase } from '../../../test/database.ts';
import { insertKey } from '../../../test/insert-key.ts';
import { openTestSubscriptions } from '../../../test/subscriptions.ts';
import {
  lockInstallation,
  readPausedSince,
  separateCopy,
  setBlobsMarked,
} from '../../platform/installation/installation.ts';
import { openVault, secretsKeyFile } from '../../platform/secrets/vault.ts';
import { openFolderBlobs } from '../../platform/store/blobs/folder-blobs.ts';
import { exportDatabase } from '../../platform/store/transfer/export.ts';
import { importDatabase } from '../../platform/store/transfer/import.ts';
import { createSubscription } from '../../runs/subscriptions/subscriptions.ts';
import { hashKey } from '../../team/access/keys/key.ts';
import { importInstallation } from './import-installation.ts';

const source = await openTestSubscriptions();
const { db } = source.database;

let folder: string;
let oldFolder: string;
let file: string;
beforeEach(async () => {
  folder = newFolder();
  oldFolder = path.join(folder, 'old');
  file = path.join(folder, 'export');
  await mkdir(oldFolder);
  const vault = await openVault(oldFolder, undefined);
  await createSubscription(db, vault, source.teamId, {
    url: source.receiver.url,
    events: ['run.ended'],
    enabled: true,
  });
  await exportDatabase({ db, blobs: await openFolderBlobs(path.join(oldFolder, 'blobs')), to: file });
});

/** Imports into a new database and a new data folder. `prepare` may change the folder before the import. */
async function imported(
  prepare: (dataFolder: string) => Promise<unknown>,
  secretsKey?: string,
  look: (db: pg.Client) => Promise<void> = async () => {},
) {
  const database = await createEmptyDatabase();
  const dataFolder = path.join(folder, 'new');
  await mkdir(dataFolder);
  await prepare(dataFolder);
  try {
    const place = { dataFolder, databaseUrl: database.url, blobs: {}, ...(secretsKey ? { secretsKey } : {}) };
    const result = await importInstallation(place, file);
    const client = new pg.Client(database.url);
    await client.connect();
    await look(client).finally(() => client.end());
    return { dataFolder, ...result };
  } finally {
    await database.drop();
  }
}

test('an import reports no key problem if the key was copied before the import', async () => {
  const { keyProblem } = await imported((to) => copyFile(secretsKeyFile(oldFolder), secretsKeyFile(to)));
  expect(keyProblem).toBeNull();
});

test('an import names the key file to copy if the key is missing, and creates no key', async () => {
  const { dataFolder, keyProblem } = await imported(async () => undefined);
  const target = secretsKeyFile(dataFolder);
  expect(keyProblem).toContain(`${target} is missing`);
  expect(keyProblem).toContain(
    `Copy secrets-key to ${target} from the data folder of the installation that wrote them`,
  );
  await copyFile(secretsKeyFile(oldFolder), target);
});

test('an import reports that the key file or the setting has another key', async () => {
  const { keyProblem } = await imported((to) => openVault(to, undefined));
  expect(keyProblem).toContain('does not hold the key that opens the secrets of 1 event subscription');
  await rm(path.join(folder, 'new'), { recursive: true });
  const other = await imported(async () => undefined, randomBytes(32).toString('base64'));
  expect(other.keyProblem).toContain('RUNYARD_SECRETS_KEY is not the key');
});

test('an import names secrets of every kind that the key does not decrypt', async () => {
  await db.query('DELETE FROM event_subscriptions');
  await db.query(
    `INSERT INTO stored_secrets (id, team_id, name, vault_key_id, sealed_value) SELECT gen_random_uuid(), $1, name, 'gone', '' FROM unnest('{A,B}'::text[]) AS name`,
    [source.teamId],
  );
  await db.query(
    `INSERT INTO mcp_servers (id, team_id, name, command, vault_key_id, sealed_values) VALUES (gen_random_uuid(), $1, 'M', 'm', 'gone', '')`,
    [source.teamId],
  );
  await exportDatabase({ db, blobs: await openFolderBlobs(path.join(oldFolder, 'blobs')), to: file });
  try {
    const { keyProblem } = await imported(async () => undefined);
    expect(keyProblem).toContain('the key that opens 2 stored secrets, the values of 1 MCP server, so runs');
  } finally {
    await db.query('DELETE FROM stored_secrets');
    await db.query('DELETE FROM mcp_servers');
  }
});

test('an import copies keys, but no browser session and no sign-in code of the source', async () => {
  const raw = await insertKey(db, source.teamId, {});
  const [key] = await db.query<{ id: string }>('SELECT id FROM api_keys WHERE hash = $1', [hashKey(raw)]);
  await db.query(
    `INSERT INTO api_keys (id, hash, kind, name, team_id, user_id, prefix, last_four, expires_at, minted_by)
     SELECT gen_random_uuid(), sha256('session'), kind, 'Browser', team_id, user_id, '', '', now() + interval '1 hour', id
     FROM api_keys WHERE id = $1`,
    [key?.id],
  );
  await db.query(
    `INSERT INTO sign_in_codes (hash, key_id, team_id, expires_at) VALUES (sha256('code'), $1, $2, now() + interval '1 minute')`,
    [key?.id, source.teamId],
  );
  await exportDatabase({ db, blobs: await openFolderBlobs(path.join(oldFolder, 'blobs')), to: file });
  await imported(
    async () => undefined,
    undefined,
    async (copy) => {
      const { rows } = await copy.query(`SELECT name FROM api_keys WHERE kind = 'personal'`);
      expect(rows).toEqual([{ name: 'A key' }]);
      expect((await copy.query('SELECT FROM sign_in_codes')).rowCount).toBe(0);
    },
  );
});

test('an import counts the rows whose blob was missing when the backup file was written', async () => {
  const run = await source.newRun();
  const blobs = await openFolderBlobs(path.join(oldFolder, 'blobs'));
  await blobs.put('artifacts/there', Readable.from([Buffer.from('x')]), { maxBytes: 10 });
  await db.query(
    `INSERT INTO run_skills (id, run_id, position, name, description, owner, repo, path, commit_id, blob_key)
     SELECT gen_random_uuid(), $1, n, n, '', 'o', 'r', '', '', key FROM (VALUES (0, 'artifacts/there'), (1, 'skills/gone')) AS s (n, key)`,
    [run],
  );
  await exportDatabase({ db, blobs, to: file });
  expect((await imported(async () => undefined)).missingBlobs).toBe(1);
});

test('an import that is killed before it marks the blobs leaves a paused installation with a new id', async () => {
  const of = await lockInstallation(db);
  await setBlobsMarked(db);
  await exportDatabase({ db, blobs: await openFolderBlobs(path.join(oldFolder, 'blobs')), to: file });
  const copy = await createTestDatabase();
  try {
    const blobs = await openFolderBlobs(path.join(folder, 'blobs'));
    await importDatabase({ db: copy.db, blobs, from: file, whenFilled: separateCopy });
    expect(await readPausedSince(copy.db)).not.toBeNull();
    const { id, hasMarkedBlobs } = await lockInstallation(copy.db);
    expect(hasMarkedBlobs).toBe(false);
    expect(id).not.toBe(of.id);
  } finally {
    await copy.drop();
  }
});
