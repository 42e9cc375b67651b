import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, test } from 'vitest';
import { renderTables } from './table-types.ts';
import { createTestDatabase } from './test-database.ts';

test('tables.ts is what the migrations make (else run generate-tables.ts)', async () => {
  const { db, drop } = await createTestDatabase();
  try {
    expect(await readFile(path.join(import.meta.dirname, 'tables.ts'), 'utf8')).toBe(await renderTables(db));
  } finally {
    await drop();
  }
});
