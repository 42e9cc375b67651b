/**
 * Program: writes the generated pages and tables. Started by bin/generate. With `--check`, the program changes no file. It names each
 * file that differs from its expected text, and exits with 1 if there is one.
 */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { renderFactoryFilesPage } from '../../packages/cli/src/generated-pages/factory-files-page.ts';
import { renderLimitsPage } from '../../packages/cli/src/generated-pages/limits-page.ts';
import { renderMetricsPage } from '../../packages/cli/src/generated-pages/metrics-page.ts';
import { renderSettingsPage } from '../../packages/cli/src/generated-pages/settings-page.ts';
import { renderTable } from '../../packages/client/src/routes/render.ts';
import { openDatabase } from '../../packages/service/src/platform/store/database/database.ts';
import { silentLog } from '../../packages/service/src/platform/store/database/log.ts';
import { startEmbeddedPostgres } from '../../packages/service/src/platform/store/embedded/start.ts';
import { migrateDatabase } from '../../packages/service/src/platform/store/migrations/migrate.ts';
import { renderTables } from '../../packages/service/src/platform/store/migrations/render-tables.ts';
import { replaceAccessTable } from '../../packages/service/test/security-page.ts';

const root = path.resolve(import.meta.dirname, '../..');

/** The generated files, each with the function that returns its expected text. `page` is the present text of the file. */
const generated: Readonly<Record<string, (page: string) => string | Promise<string>>> = {
  'docs/settings.md': renderSettingsPage,
  'docs/limits.md': renderLimitsPage,
  'docs/metrics.md': renderMetricsPage,
  'docs/factory-files.md': renderFactoryFilesPage,
  'docs/security.md': replaceAccessTable,
  'packages/client/src/routes/table.ts': renderTable,
  'packages/service/src/platform/store/migrations/tables.md': renderTablesOfNewDatabase,
};

async function renderTablesOfNewDatabase(): Promise<string> {
  const folder = await mkdtemp(path.join(tmpdir(), 'runyard-tables-'));
  const server = await startEmbeddedPostgres({ dataDir: folder, log: silentLog });
  try {
    const db = await openDatabase({ address: server.connection, maxConnections: 1, log: silentLog });
    await migrateDatabase(db);
    const page = await renderTables(db);
    await db.close();
    return page;
  } finally {
    await server.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

const checks = process.argv[2] === '--check';
for (const [name, render] of Object.entries(generated)) {
  const file = path.join(root, name);
  const present = await readFile(file, 'utf8');
  const text = await render(present);
  if (text === present) continue;
  if (checks) {
    console.log(`${name} differs from its source: run bin/generate`);
    process.exitCode = 1;
  } else {
    await writeFile(file, text);
    console.log(`wrote ${name}`);
  }
}
