import { PassThrough, Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { closeAtEnd, newFolder } from '../../../../../../test/support/close-at-end.ts';
import { createTestDatabase } from '../../../../test/database.ts';
import type { BlobStore } from '../blobs/blobs.ts';
import { openFolderBlobs } from '../blobs/folder-blobs.ts';
import { guardBlobs } from '../blobs/guarded-blobs.ts';
import { StoreUnavailable } from '../database/unavailable.ts';
import { exportDatabase } from './export.ts';
import { noExportRuns } from './running-exports.ts';

const database = closeAtEnd(await createTestDatabase());
const folder = newFolder();
const ofFolder = await openFolderBlobs(folder);
const ofService: BlobStore = guardBlobs(ofFolder, { mayDelete: () => noExportRuns(database.db) });

const put = (key: string) => ofService.put(key, Readable.from([Buffer.from(`bytes of ${key}`)]), { maxBytes: 100 });

test('a blob that is deleted during an export stays, and can be deleted after the export', async () => {
  await put('workspaces/1');
  const to = new PassThrough({ highWaterMark: 1 });
  const exported = exportDatabase({ db: database.db, blobs: ofFolder, to });
  // When the first bytes arrive, the export has begun its snapshot. The export then pauses until these bytes are read.
  await new Promise((resolve) => to.once('readable', resolve));
  await ofService.delete('workspaces/1');
  expect(await text(to)).toContain('bytes of workspaces/1');
  expect(await exported).toMatchObject({ blobs: 1 });
  await ofService.delete('workspaces/1');
  expect(await ofService.stat('workspaces/1')).toBeUndefined();
});

test('an export contains all rows of a table even if a migration wants to rewrite the table during the export', async () => {
  const { db } = database;
  await db.query(`CREATE TABLE rewritten AS SELECT 'before the rewrite' AS text`);
  const to = new PassThrough({ highWaterMark: 1 });
  const exported = exportDatabase({ db, blobs: ofFolder, to });
  await new Promise((resolve) => to.once('readable', resolve));
  const rewritten = db.onOwnConnection(async (client) => {
    await client.query('BEGIN; ALTER TABLE rewritten ADD COLUMN more uuid DEFAULT gen_random_uuid()');
    await client.query('COMMIT');
  });
  const isDoneOrWaiting = async () =>
    (await db.query(`SELECT FROM pg_attribute WHERE attrelid = 'rewritten'::regclass AND attname = 'more'`)).length >
      0 || (await db.query(`SELECT FROM pg_locks WHERE relation = 'rewritten'::regclass AND NOT granted`)).length > 0;
  await expect.poll(isDoneOrWaiting).toBe(true);
  expect(await text(to)).toContain('before the rewrite');
  await exported;
  await rewritten;
  await db.query('DROP TABLE rewritten');
});

test('blobs can be deleted again after an export was abandoned', async () => {
  await put('workspaces/2');
  const to = new PassThrough({ highWaterMark: 1 });
  const exported = exportDatabase({ db: database.db, blobs: ofFolder, to });
  await new Promise((resolve) => to.once('readable', resolve));
  to.destroy();
  await expect(exported).rejects.toThrow();
  await ofService.delete('workspaces/2');
  expect(await ofService.stat('workspaces/2')).toBeUndefined();
});

test('an export fails if its connection to the database is lost while it writes blobs', async () => {
  await put('workspaces/3');
  const lost: BlobStore = {
    ...ofFolder,
    get: async (key) => {
      await database.db.query(
        `SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 2 AND mode = 'ShareLock'
           AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
      );
      return await ofFolder.get(key);
    },
  };
  const to = new PassThrough();
  to.resume();
  await expect(exportDatabase({ db: database.db, blobs: lost, to })).rejects.toThrow('Make it again');
});

test('deleting a blob while the database does not answer keeps the blob and throws no error', async () => {
  await put('workspaces/4');
  const away = { query: () => Promise.reject(new StoreUnavailable('database', new Error('away'))) };
  await guardBlobs(ofFolder, { mayDelete: () => noExportRuns(away) }).delete('workspaces/4');
  expect(await ofFolder.stat('workspaces/4')).toBeDefined();
});
