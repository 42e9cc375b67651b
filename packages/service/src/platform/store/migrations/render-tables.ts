/** Renders the tables of a migrated database as a page, for readers who do not read all migrations. */
import type { Queryable } from '../database/database.ts';
import { boolean, defineStatement, nullable, type RowOf, text } from '../database/statement.ts';

const columnsOfTables = defineStatement({
  name: 'read_columns_of_tables',
  text: `
    SELECT c.relname::text AS table, a.attname::text AS name, format_type(a.atttypid, a.atttypmod) AS type, NOT a.attnotnull AS nullable,
      CASE WHEN a.attgenerated = '' THEN pg_get_expr(d.adbin, d.adrelid) END AS default,
      a.attidentity <> '' OR a.attgenerated <> '' AS generated,
      EXISTS (SELECT FROM pg_constraint k WHERE k.conrelid = c.oid AND k.contype = 'p' AND a.attnum = ANY(k.conkey)) AS "inPrimaryKey",
      (SELECT min(k.confrelid::regclass::text) FROM pg_constraint k
       WHERE k.conrelid = c.oid AND k.contype = 'f' AND k.conkey = ARRAY[a.attnum]) AS references
    FROM pg_class c
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
    LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
    WHERE c.relkind IN ('r', 'p') AND c.relnamespace = current_schema()::regnamespace AND c.relname <> 'schema_migrations'
    ORDER BY c.relname COLLATE "C", a.attnum`,
  row: {
    table: text(),
    name: text(),
    // As in CREATE TABLE.
    type: text(),
    nullable: boolean,
    // The default as an SQL expression; null: the column has no default, or is generated.
    default: nullable(text()),
    generated: boolean,
    inPrimaryKey: boolean,
    // The table that a foreign key of this column refers to.
    references: nullable(text()),
  },
});

type Column = RowOf<typeof columnsOfTables>;

const checksOfTables = defineStatement({
  name: 'read_checks_of_tables',
  text: `
    SELECT c.relname::text AS table, pg_get_constraintdef(k.oid) AS definition
    FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid
    WHERE k.contype = 'c' AND c.relnamespace = current_schema()::regnamespace`,
  row: { table: text(), definition: text() },
});

const head = `# Tables

Written from the migrations by \`bin/generate\`.
`;

/** Returns the text of `tables.md`. */
export async function renderTables(db: Queryable): Promise<string> {
  const choices = await readChoices(db);
  const tables = Map.groupBy(await db.query(columnsOfTables), (column) => column.table);
  const sections = [...tables].map(([table, columns]) => {
    const rows = columns.map((column) => {
      const values = choices.get(`${table}.${column.name}`);
      return `| ${column.name} | ${column.type} | ${propertiesOf(column, values).join(', ')} |`;
    });
    return `\n## ${table}\n\n| column | type | |\n|---|---|---|\n${rows.join('\n')}\n`;
  });
  return head + sections.join('');
}

function propertiesOf(column: Column, choices: readonly string[] | undefined): string[] {
  return [
    ...(column.inPrimaryKey ? ['primary key'] : []),
    ...(column.nullable ? ['may be null'] : []),
    ...(column.generated ? ['generated'] : []),
    ...(column.default === null ? [] : [`default \`${column.default}\``]),
    ...(column.references === null ? [] : [`→ ${column.references}`]),
    ...(choices === undefined ? [] : [`one of ${choices.join(' ')}`]),
  ];
}

/** Returns the values of columns with a check of the form `column IN ('a', 'b')`, by `table.column`. */
async function readChoices(db: Queryable): Promise<Map<string, string[]>> {
  const choices = new Map<string, string[]>();
  for (const { table, definition } of await db.query(checksOfTables)) {
    const match = /^CHECK \(\((\w+) = ANY \(ARRAY\[([^\]]*)\]\)\)\)$/.exec(definition);
    if (match === null) continue;
    const values = [...(match[2] ?? '').matchAll(/'((?:[^']|'')*)'::text/g)].map((value) => value[1] ?? '');
    choices.set(`${table}.${match[1]}`, values);
  }
  return choices;
}
