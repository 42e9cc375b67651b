import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import pg from 'pg';
import { afterAll, expect, test } from 'vitest';
import { closeAtEnd } from '../../../../../../test/support/close-at-end.ts';
import { createTestDatabase } from '../../../../test/database.ts';
import { loadStatements, sources } from '../../../../test/defined-statements.ts';
import { describeStatement } from '../../../../test/describe-statement.ts';
import { type Column, definedStatements, defineStatement, text, uuid } from './statement.ts';

const typeNames = new Map<number, string>();

const database = closeAtEnd(await createTestDatabase());
const client: pg.Client = new pg.Client({ connectionString: database.url });
await client.connect();
const { rows } = await client.query<{ oid: number; name: string }>(
  'SELECT oid::int4 AS oid, format_type(oid, NULL) AS name FROM pg_type',
);
for (const { oid, name } of rows) typeNames.set(oid, name);
await loadStatements();

afterAll(async () => {
  await client.end();
});

interface CheckedStatement {
  readonly name: string;
  readonly text: string;
  readonly row: Readonly<Record<string, Column<unknown>>>;
}

async function faultsOf(statement: CheckedStatement): Promise<string[]> {
  const planned = await describeStatement(client, statement.text).catch((error: Error) => error);
  if (planned instanceof Error) return [`${statement.name}: ${planned.message}`];
  const faults: string[] = [];
  const types = new Map(planned.map((column) => [column.name, typeNames.get(column.typeOid) ?? 'unknown']));
  for (const [name, { sqlTypes }] of Object.entries(statement.row)) {
    const type = types.get(name);
    if (type === undefined) faults.push(`${statement.name}: the result has no column ${name}`);
    else if (!sqlTypes.includes(type)) {
      faults.push(`${statement.name}: ${name} is ${type}, but the code declares ${sqlTypes.join(' or ')}`);
    }
  }
  return faults;
}

test('every statement is valid SQL and returns the columns that the code declares', async () => {
  const faults: string[] = [];
  for (const statement of definedStatements) faults.push(...(await faultsOf(statement as CheckedStatement)));
  expect(faults).toEqual([]);
  expect(definedStatements.length).toBeGreaterThan(0);
});

/** Matches a notice inside of a commit. */
const notifies = /\bpg_notify\(\s*'?([^,]*?)'?\s*,/g;

/**
 * A notice inside of a commit makes all transactions of the database that notify wait for each other. Only rare changes of keys, of
 * webhooks and of model providers may do this, because an old key must not be used for a second.
 */
test('only changes of keys, webhooks and model providers notify inside of their transaction, and all other notices are sent after the commit', async () => {
  const files = globSync('**/*.ts', { cwd: sources }).filter((file) => !file.endsWith('.test.ts'));
  const texts = files.flatMap((file) => [...readFileSync(path.join(sources, file), 'utf8').matchAll(notifies)]);
  const channels = new Set(texts.map(([, channel = '']) => channel.replace(/[${}]/g, '')));
  // `channel` is the statement that sends notices after commits, and `$1` is always `keysChannel`.
  expect([...channels].sort()).toEqual(['1', 'channel', 'keysChannel', 'providersChannel']);
  const { rows } = await client.query<{ text: string }>(
    "SELECT prosrc AS text FROM pg_proc WHERE prosrc ~* 'notify' AND pronamespace = current_schema()::regnamespace",
  );
  const inDatabase = rows.flatMap(({ text: source }) => [...source.matchAll(notifies)].map(([, channel]) => channel));
  expect(new Set(inDatabase)).toEqual(new Set(['runyard_webhooks']));
});

test('each statement has a unique name', () => {
  const names = definedStatements.map(({ name }) => name);
  expect(names.filter((name, index) => names.indexOf(name) !== index)).toEqual([]);
  expect(names.filter((name) => name.length > 63)).toEqual([]);
});

test('the check of a statement reports a missing column and a wrong type', async () => {
  const wrong = { name: 'wrong', text: 'SELECT id, title FROM runs', row: { id: text(), name: text(), title: text() } };
  expect(await faultsOf(wrong)).toEqual([
    'wrong: id is uuid, but the code declares text or character varying',
    'wrong: the result has no column name',
  ]);
});

test('a statement returns rows of the declared types', async () => {
  const readVersion = defineStatement({
    name: 'read_some_uuid',
    text: 'SELECT gen_random_uuid() AS id',
    row: { id: uuid },
  });
  const [row] = await database.db.query(readVersion);
  const id: string | undefined = row?.id;
  expect(id).toMatch(/^[0-9a-f-]{36}$/);
});
