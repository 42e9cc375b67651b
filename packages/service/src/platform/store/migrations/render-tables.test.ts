import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, test } from 'vitest';
import { createTestDatabase } from '../../../../test/database.ts';
import { renderTables } from './render-tables.ts';

test('renders tables.md (if this fails, run generate-tables.ts)', async () => {
  const { db, drop } = await createTestDatabase();
  try {
    expect(await readFile(path.join(import.meta.dirname, 'tables.md'), 'utf8')).toBe(await renderTables(db));
  } finally {
    await drop();
  }
});
