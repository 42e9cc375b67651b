import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { inserted, readLiterals, readTables } from './checks/sql-text.ts';
import { findReaderFaults } from './checks/table-readers.ts';
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
  return findReaderFaults(root).map((fault) => fault.replace(`packages/service/src/${file}`, 'It'));
}

const sql = (text: string) => `export const statement = {\n  name: 'a',\n  text: \`\n    ${text}\`,\n};\n`;
const undeclared = 'It reads the table users of access: test/checks/table-owners.ts names no reader live';

test('the check accepts reads by the owner of a table, by a declared reader, and by the export of all tables', async () => {
  expect(await faultsOf('team/access/people/list.ts', sql('SELECT 1 FROM users JOIN team_members ON true'))).toEqual(
    [],
  );
  expect(await faultsOf('edges/live/read.ts', sql('SELECT 1 FROM runs, executions'))).toEqual([]);
  expect(await faultsOf('platform/store/transfer/all.ts', sql('SELECT 1 FROM runs'))).toEqual([]);
});

test.each([
  ['SELECT 1 FROM users'],
  ['SELECT 1 FROM ONLY users u'],
  ['SELECT 1 FROM runs r\n    LEFT JOIN users u ON true'],
  ['SELECT 1 FROM runs r, users u'],
  ['SELECT 1 FROM runs r JOIN executions e ON e.id = ANY(ARRAY[1, 2]) AND true, users u'],
  ['SELECT 1 FROM (runs r JOIN users u ON true)'],
  ['SELECT (SELECT name FROM users WHERE id = $1) AS name'],
  ['SELECT 1 WHERE NOT EXISTS (SELECT FROM users)'],
  ['SELECT 1 FROM unnest($1::uuid[], $2::text[]) AS a(id, name), users u'],
  ['SELECT 1 FROM runs r CROSS JOIN LATERAL (SELECT u.id FROM users u) x'],
  ['UPDATE event_stream_marks SET at = now() FROM users'],
  ['DELETE FROM event_stream_marks USING users'],
  ['MERGE INTO event_stream_marks USING users ON true'],
  ['INSERT INTO event_stream_marks (id) SELECT id FROM users'],
  ['WITH named AS (SELECT 1) SELECT 1 FROM named UNION SELECT 1 FROM users'],
])('the check rejects a read in a room that is not a declared reader: %s', async (text) => {
  expect(await faultsOf('edges/live/read.ts', sql(text))).toEqual([undeclared]);
});

test('the check finds a read in a one-line string, and in a fragment inside another template', async () => {
  expect(await faultsOf('edges/live/read.ts', "const text = 'SELECT 1 FROM users';\n")).toEqual([undeclared]);
  const nested = `const text = \`SELECT \${all ? \`(SELECT count(*) FROM users)\` : "1"} FROM runs\`;\n`;
  expect(await faultsOf('edges/live/read.ts', nested)).toEqual([undeclared]);
});

test('the check rejects a read of a table of a higher floor, even if the reader is declared', async () => {
  expect(await faultsOf('team/skills/last.ts', sql('SELECT 1 FROM runs WHERE id = $1'))).toEqual([
    'It reads the table runs of runs, which is on a higher floor',
  ]);
});

test.each([
  ['a comment of the source', '/** Joins of `FROM users u`. */\n// FROM users\nconst a = 1; // `FROM users`\n'],
  ['a comment of the statement', sql('SELECT 1 FROM runs -- FROM users\n    /* JOIN users */ WHERE true')],
  ['an import', "import { users } from '../people/users.ts';\n"],
  ['a string of the statement', sql("SELECT 'FROM users' FROM runs")],
  ['a regular expression before a quote', "const a = /['`]/.test(b) || c / d; // FROM users\nconst e = 'x';\n"],
])('the check finds no read in %s', async (_, source) => {
  expect(await faultsOf('edges/live/read.ts', source)).toEqual([]);
});

test.each([
  ['WITH users AS (SELECT 1) SELECT 1 FROM users'],
  ['WITH RECURSIVE a AS (SELECT 1), users (id, name) AS MATERIALIZED (SELECT 1) SELECT 1 FROM a JOIN users ON true'],
  ['SELECT extract(epoch FROM users.at), a IS DISTINCT FROM users FROM runs r JOIN executions e USING (id)'],
  ['DELETE FROM event_stream_marks WHERE id IN (1, 2)'],
  [`SELECT 1 FROM users(1), \${relation} r`],
])('the check finds no read of a table of another room in %s', async (text) => {
  expect(await faultsOf('edges/live/read.ts', sql(text))).toEqual([]);
});

test('`readTables` returns the names that a statement reads, including names that are no tables of the service', () => {
  const [name, text = ''] = readLiterals(sql(`SELECT 1 FROM runs r JOIN \${lists[0]} l ON true JOIN things ON true`));
  expect([name, readTables(text)]).toEqual(['a', ['runs', inserted, 'things']]);
});
