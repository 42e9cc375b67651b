import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, test } from 'vitest';
import { createContext } from '../context.ts';
import { checkDatabase } from './database.ts';

test('doctor reports no problem if a machine that only has a worker has no database', async () => {
  const dataDir = await mkdtemp(path.join(tmpdir(), 'runyard-doctor-'));
  const elsewhere = { RUNYARD_DATA_DIR: dataDir, RUNYARD_BASE_URL: 'https://runyard.example.com' };
  expect(await checkDatabase(createContext(elsewhere))).toMatchObject({ level: 'fact' });
  expect(await checkDatabase(createContext({ RUNYARD_DATA_DIR: dataDir }))).toMatchObject({ level: 'good' });
});
