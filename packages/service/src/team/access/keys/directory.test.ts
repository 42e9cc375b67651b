import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import pino from 'pino';
import { expect, test } from 'vitest';
import { createTestDatabase } from '../../../../test/database.ts';
import type { Database } from '../../../platform/store/database/database.ts';
import type { Statement } from '../../../platform/store/database/statement.ts';
import { bootstrap } from './bootstrap.ts';
import { openKeyDirectory } from './directory.ts';
import { keysChannel } from './key.ts';

test('a key that is deleted during its look-up is not cached', async () => {
  const { db, drop } = await createTestDatabase();
  const dataDir = await mkdtemp(path.join(tmpdir(), 'runyard-directory-'));
  const first = await bootstrap(db, { dataDir, key: undefined });
  if (first.kind !== 'ready') throw new Error('no key');
  const isRead = Promise.withResolvers<void>();
  const isHeard = Promise.withResolvers<void>();
  const slow: Database = {
    ...db,
    query: async <Row extends object>(statement: Statement | string, values?: readonly unknown[]) => {
      const rows = await db.query<Row>(statement, values);
      if (typeof statement === 'string' || statement.name !== 'read_api_key') return rows;
      isRead.resolve();
      await isHeard.promise;
      return rows;
    },
    listen: (channel, onNotify, onReconnect) =>
      db.listen(
        channel,
        (payload) => {
          onNotify(payload);
          isHeard.resolve();
        },
        onReconnect,
      ),
  };
  const directory = await openKeyDirectory(slow, pino({ level: 'silent' }));
  try {
    const asked = directory.authenticate(first.key);
    await isRead.promise;
    await db.query(
      `WITH gone AS (DELETE FROM api_keys RETURNING id) SELECT pg_notify('${keysChannel}', id::text) FROM gone`,
    );
    expect(await asked, 'it was there when it was looked up').not.toBeNull();
    expect(await directory.authenticate(first.key)).toBeNull();
  } finally {
    directory.close();
    await drop();
    await rm(dataDir, { recursive: true, force: true });
  }
});
