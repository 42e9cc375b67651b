import { mkdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { serviceRooms } from './checks/import-rules.ts';
import { readsOfHigherFloors, tableRules } from './checks/table-owners.ts';
import { findReaderFaults, findUnusedReaders } from './checks/table-readers.ts';
import { findWriterFaults } from './checks/table-writers.ts';
import { newFolder } from './support/close-at-end.ts';

let root: string;

beforeEach(() => {
  root = newFolder();
});

/** Writes one source file of the service and returns the faults that the check finds, without the file's path. */
async function faultsOf(file: string, source: string): Promise<string[]> {
  const target = path.join(root, 'packages/service/src', file);
  await mkdir(path.dirname(target), { recursive: true });
  await writeFile(target, source);
  return findWriterFaults(root).map((fault) => fault.replace(`packages/service/src/${file}`, 'It'));
}

const sql = (text: string) => `export const statement = {\n  name: 'a',\n  text: \`\n    ${text}\`,\n};\n`;

test('the check accepts every kind of write in the room that owns the table', async () => {
  const text = `WITH a AS (INSERT INTO executions (id) VALUES ($1)), b AS (DELETE FROM executions)
    UPDATE executions e SET phase = 'ended' WHERE id = $1`;
  expect(await faultsOf('runs/executions/end.ts', sql(text))).toEqual([]);
});

test.each([
  ['INSERT INTO executions (id) VALUES ($1)'],
  ['DELETE FROM executions WHERE id = $1'],
  ["UPDATE executions SET phase = 'ended'"],
  ["UPDATE ONLY executions AS e SET phase = 'ended'"],
  ['WITH renewed AS (\n      UPDATE executions e\n      SET lease_until = now())\n    SELECT 1'],
  ['TRUNCATE executions'],
  ['MERGE INTO executions USING runs ON true'],
])('the check rejects a write in a room that does not own the table: %s', async (text) => {
  expect(await faultsOf('edges/workers/rows.ts', sql(text))).toEqual([
    'It writes the table executions, which only executions writes',
  ]);
});

test('the check rejects a write in a one-line string and in a file directly in src', async () => {
  expect(await faultsOf('service.ts', "const text = 'DELETE FROM users WHERE id = $1';\n")).toEqual([
    'It writes the table users, which only access writes',
  ]);
});

test('the check accepts reads, locks and comments', async () => {
  const text = 'SELECT 1 FROM executions FOR NO KEY UPDATE SKIP LOCKED; SELECT 1 FROM runs FOR UPDATE';
  expect(await faultsOf('edges/live/read.ts', `/** An INSERT INTO runs comes first. */\n${sql(text)}`)).toEqual([]);
});

test('the check lets only the room executions set the state of a run', async () => {
  const text =
    "UPDATE runs SET title = $2,\n      state = (SELECT 'A' FROM runs WHERE true), prompt = '' WHERE id = $1";
  expect(await faultsOf('runs/runs/end.ts', sql(text))).toEqual(['It sets runs.state, which only executions sets']);
});

test('the check finds columns of an UPDATE after inserted code and in a list of columns', async () => {
  const inserted = `UPDATE runs SET \${titles.join('')} state = 'FAILED' WHERE id = $1`;
  expect(await faultsOf('runs/runs/end.ts', sql(inserted))).toEqual(['It sets runs.state, which only executions sets']);
  expect(await faultsOf('runs/runs/end.ts', sql("UPDATE runs SET (title, state) = ('', 'FAILED')"))).toEqual([
    'It sets runs.state, which only executions sets',
  ]);
});

test('the check lets the room executions set only the columns of `runs` that are declared for it, such as the state', async () => {
  expect(await faultsOf('runs/executions/end.ts', sql("UPDATE runs SET state = 'ERROR', event_seq = 1"))).toEqual([]);
  expect(await faultsOf('runs/executions/end.ts', sql("UPDATE runs SET state = 'ERROR', title = ''"))).toEqual([
    'It writes the table runs, which only runs writes',
  ]);
});

test('the check lets a room that may delete rows of a table only delete them, not insert or update them', async () => {
  expect(await faultsOf('runs/executions/requeue.ts', sql('DELETE FROM snapshots'))).toEqual([]);
  expect(await faultsOf('runs/executions/requeue.ts', sql('INSERT INTO snapshots (id) VALUES ($1)'))).toEqual([
    'It writes the table snapshots, which only files writes',
  ]);
});

test('the check ignores columns in the FROM and WHERE of an UPDATE', async () => {
  const text = "UPDATE runs SET title = '' FROM (SELECT 1 AS state) s WHERE runs.id = $1 AND state = 'ERROR'";
  expect(await faultsOf('runs/runs/name.ts', sql(text))).toEqual([]);
});

test('the check rejects a write to a table without an owner, and a statement into which the code inserts the name of the table', async () => {
  expect(await faultsOf('runs/runs/things.ts', sql('INSERT INTO things (id) VALUES ($1)'))).toEqual([
    'It: the table things has no owner in test/checks/table-owners.ts',
  ]);
  expect(await faultsOf('runs/runs/things.ts', `const text = 'DELETE FROM \${table}';\n`)).toEqual([
    'It: a statement names its table at run time, so this check cannot tell which room writes it',
  ]);
});

test('table-owners.ts has a rule for every table of the database, and names only existing rooms', async () => {
  const page = await readFile(
    path.join(import.meta.dirname, '../packages/service/src/platform/store/migrations/tables.md'),
    'utf8',
  );
  const tables = [...page.matchAll(/^## (\w+)$/gm)].map(([, name]) => name);
  expect(Object.keys(tableRules).sort()).toEqual(tables.sort());
  const named = Object.values(tableRules).flatMap(({ owner, columns = {}, readers = [] }) => [
    owner,
    ...readers,
    ...Object.values(columns).flat(),
  ]);
  expect(named.filter((room) => !serviceRooms.includes(room))).toEqual([]);
});

test('the statements of the service follow the rules for writers and readers of tables, and need each declared reader', () => {
  const repository = path.join(import.meta.dirname, '..');
  expect([...findWriterFaults(repository), ...findReaderFaults(repository)]).toEqual([]);
  expect(findUnusedReaders(repository)).toEqual([]);
  expect(readsOfHigherFloors.length).toBeLessThanOrEqual(3);
});
