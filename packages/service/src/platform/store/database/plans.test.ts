import { globSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { closeAtEnd } from '../../../../../../test/support/close-at-end.ts';
import { createTestDatabase } from '../../../../test/database.ts';
import { definedStatements } from './statement.ts';

const sources = path.resolve(import.meta.dirname, '../../..');
/** Files that are not imported here, because they are programs and would run. */
const programs = ['main.ts'];

/** Tables that have few rows in any installation. */
const smallTables = new Set([
  'teams',
  'worker_connections',
  'gone_workers',
  'service_instances',
  'event_stream_epoch',
  'event_merges',
  'model_outages',
  'open_model_requests',
  'sign_in_codes',
  'storage_changes',
  'schema_migrations',
]);

/**
 * Names of statements that may read a whole table, because they need all its rows. They run rarely: after a key of the vault was
 * replaced, when the service starts, for metrics, or at most once a second.
 */
const readsAll =
  /_to_seal_again$|_of_other_keys$|^count_unreadable_|^read_bootstrap_keys$|^(claim|find_due)_deliveries$|^read_webhooks_with_large_logs$|^(measure_due_deliveries|sum_stored_bytes|delete_event_stream_marks)$/;
const database = closeAtEnd(await createTestDatabase());
for (const file of globSync('**/*.ts', { cwd: sources })) {
  if (!file.endsWith('.test.ts') && !programs.includes(file)) await import(path.join(sources, file));
}

interface PlanNode {
  readonly 'Node Type': string;
  readonly 'Relation Name'?: string;
  readonly Plans?: readonly PlanNode[];
}

const readWhole = (node: PlanNode): string[] => [
  ...(node['Node Type'] === 'Seq Scan' && node['Relation Name'] !== undefined ? [node['Relation Name']] : []),
  ...(node.Plans ?? []).flatMap(readWhole),
];

test('each statement that reads a growing table has an index', async ({ skip }) => {
  const [server] = await database.db.query<{ version: number }>(
    "SELECT current_setting('server_version_num')::int AS version",
  );
  if (server === undefined || server.version < 160_000) skip('older servers explain no statement without its values');
  const faults = await database.db.transaction(async (tx) => {
    // Without this setting, PostgreSQL would plan to read each table whole, because the tables are empty.
    await tx.query('SET LOCAL enable_seqscan = off');
    const found: string[] = [];
    for (const { name, text } of definedStatements) {
      if (readsAll.test(name)) continue;
      const [row] = await tx.query<{ 'QUERY PLAN': [{ Plan: PlanNode }] }>(
        `EXPLAIN (GENERIC_PLAN, FORMAT JSON) ${text}`,
      );
      const tables = row ? readWhole(row['QUERY PLAN'][0].Plan).filter((table) => !smallTables.has(table)) : [];
      if (tables.length > 0) found.push(`${name} reads all of ${[...new Set(tables)].join(' and ')}`);
    }
    return found;
  });
  expect(faults).toEqual([]);
});
