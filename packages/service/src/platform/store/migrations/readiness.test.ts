import { expect, test } from 'vitest';
import type { Database } from '../database/database.ts';
import { silentLog } from '../database/log.ts';
import { makeStoreCheck } from './readiness.ts';

test('the service becomes ready even if its first attempt to read the migrations fails', async () => {
  const db = { query: async () => [{ name: '0001_access' }] } as unknown as Database;
  let reads = 0;
  const check = makeStoreCheck({ db, log: silentLog, databaseProblem: () => null }, async () => {
    reads += 1;
    if (reads === 1) throw Object.assign(new Error('too many open files'), { code: 'EMFILE' });
    return [{ version: 1, name: '0001_access', sql: '', checksum: '', oldestCode: 0 }];
  });
  expect(await check()).toBe('the database does not answer');
  expect(await check()).toBeNull();
});
