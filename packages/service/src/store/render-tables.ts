/**
 * Writes the TypeScript types of the tables from a migrated database. An own generator of a page instead of
 * kysely-codegen: it knows how our connections hand values over (`values.ts`), and turns CHECK (… IN …) into unions.
 */
import type { Queryable } from './database.ts';

interface Column {
  readonly table: string;
  readonly name: string;
  /** `pg_type.typname`, arrays with a leading underscore. */
  readonly type: string;
  readonly nullable: boolean;
  readonly hasDefault: boolean;
  /** GENERATED ALWAYS: cannot be written. */
  readonly readOnly: boolean;
}

/** Read type, and the type to write where that is another one. */
const types: Record<string, [read: string, write?: string]> = {
  bool: ['boolean'],
  bytea: ['Buffer'],
  int2: ['number'],
  int4: ['number'],
  int8: ['number'],
  float8: ['number'],
  numeric: ['string', 'string | number'],
  text: ['string'],
  uuid: ['string'],
  timestamptz: ['string', 'string | Date'],
  jsonb: ['unknown', 'string'],
  tsvector: ['string'],
  xid8: ['string'],
};

const header = `/**
 * Generated from the migrations by \`node packages/service/src/store/generate-tables.ts\`. Values: see \`values.ts\`.
 */
`;

/** The text of `tables.ts`. */
export async function renderTables(db: Queryable): Promise<string> {
  const columns = await readColumns(db);
  const choices = await readChoices(db);
  const tables = Map.groupBy(columns, (column) => column.table);
  const interfaces = [...tables].map(([table, list]) => {
    const lines = list.map(
      (column) => `  ${column.name}: ${columnType(column, choices.get(`${table}.${column.name}`))};`,
    );
    return `export interface ${interfaceName(table)} {\n${lines.join('\n')}\n}\n`;
  });
  const index = [...tables.keys()].map((table) => `  ${table}: ${interfaceName(table)};`);
  const body = [
    ...interfaces,
    `/** Every table, for Kysely. */\nexport interface Tables {\n${index.join('\n')}\n}\n`,
  ].join('\n');
  const names = ['ColumnType', 'Generated', 'GeneratedAlways'].filter((name) => body.includes(`${name}<`));
  const imports = names.length > 0 ? `import type { ${names.join(', ')} } from 'kysely';\n` : '';
  return `${header}${imports}\n${body}`;
}

function columnType(column: Column, choice: readonly string[] | undefined): string {
  const isArray = column.type.startsWith('_');
  const known = types[isArray ? column.type.slice(1) : column.type];
  if (known === undefined)
    throw new Error(`${column.table}.${column.name}: no TypeScript type known for ${column.type}`);
  const shape = (type: string) => {
    const one = choice === undefined ? type : choice.map((value) => `'${value}'`).join(' | ');
    const many = isArray ? (one.includes(' ') ? `(${one})[]` : `${one}[]`) : one;
    return column.nullable && many !== 'unknown' ? `${many} | null` : many;
  };
  const [read, write] = known;
  if (column.readOnly) return `GeneratedAlways<${shape(read)}>`;
  if (write === undefined) return column.hasDefault ? `Generated<${shape(read)}>` : shape(read);
  const optional = column.hasDefault || column.nullable ? ' | undefined' : '';
  return `ColumnType<${shape(read)}, ${shape(write)}${optional}, ${shape(write)}>`;
}

/** `model_requests` → `ModelRequestsTable` */
function interfaceName(table: string): string {
  const words = table.split('_').map((word) => word.charAt(0).toUpperCase() + word.slice(1));
  return `${words.join('')}Table`;
}

async function readColumns(db: Queryable): Promise<Column[]> {
  return await db.query<Column>(`
    SELECT c.relname AS table, a.attname AS name, t.typname AS type, NOT a.attnotnull AS nullable,
      a.atthasdef OR a.attidentity <> '' AS "hasDefault", a.attidentity = 'a' OR a.attgenerated <> '' AS "readOnly"
    FROM pg_class c
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
    JOIN pg_type t ON t.oid = a.atttypid
    WHERE c.relkind IN ('r', 'p') AND c.relnamespace = current_schema()::regnamespace AND c.relname <> 'schema_migrations'
    ORDER BY c.relname COLLATE "C", a.attnum`);
}

/** Values of columns with a check of the form `column IN ('a', 'b')`, by `table.column`. */
async function readChoices(db: Queryable): Promise<Map<string, string[]>> {
  const checks = await db.query<{ table: string; definition: string }>(`
    SELECT c.relname AS table, pg_get_constraintdef(k.oid) AS definition
    FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid
    WHERE k.contype = 'c' AND c.relnamespace = current_schema()::regnamespace`);
  const choices = new Map<string, string[]>();
  for (const { table, definition } of checks) {
    const match = /^CHECK \(\((\w+) = ANY \(ARRAY\[([^\]]*)\]\)\)\)$/.exec(definition);
    if (match === null) continue;
    const values = [...(match[2] ?? '').matchAll(/'((?:[^']|'')*)'::text/g)].map((value) =>
      (value[1] ?? '').replaceAll("''", "\\'"),
    );
    choices.set(`${table}.${match[1]}`, values);
  }
  return choices;
}
