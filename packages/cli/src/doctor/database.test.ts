import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, test } from 'vitest';
import { createContext } from '../context/context.ts';
import { checkClock, checkDatabase } from './database.ts';

test('doctor reports no problem if a machine that only has a worker has no database', async () => {
  const dataDir = await mkdtemp(path.join(tmpdir(), 'runyard-doctor-'));
  const elsewhere = { RUNYARD_DATA_DIR: dataDir, RUNYARD_BASE_URL: 'https://runyard.example.com' };
  expect(await checkDatabase(createContext(elsewhere), null)).toMatchObject([{ level: 'fact' }]);
  expect(await checkDatabase(createContext({ RUNYARD_DATA_DIR: dataDir }), null)).toMatchObject([{ level: 'good' }]);
});

test('doctor does not check an embedded database in place of that of a service whose settings it does not know', async () => {
  const dataDir = await mkdtemp(path.join(tmpdir(), 'runyard-doctor-'));
  const [finding] = await checkDatabase(createContext({ RUNYARD_DATA_DIR: dataDir }), 'http://127.0.0.1:4180');
  expect(finding).toMatchObject({ level: 'fact', detail: expect.stringContaining('not checked') });
});

test('doctor reports a clock that differs by more than five seconds, and says which one is ahead', () => {
  expect(checkClock('the database server', -5_000)).toMatchObject({ level: 'good' });
  expect(checkClock('the database server', 90_000)).toMatchObject({
    level: 'note',
    detail: expect.stringContaining('the clock of the database server is 90 s ahead of the clock of this machine'),
  });
  expect(checkClock('the service', -6_000).detail).toContain('6 s behind');
});
