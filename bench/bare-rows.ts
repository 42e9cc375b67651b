/** Writes the rows of a run as a simple server would: one statement has the values of all rows as parameters. */
import { randomUUIDv7 } from 'node:crypto';
import pg from 'pg';

/** The tables that have rows of a run. The value is the SQL condition that selects the rows of the run with the id $1. */
const tables: Readonly<Record<string, string>> = {
  runs: 'id = $1::uuid',
  executions: 'run_id = $1::uuid',
  run_events: 'run_id = $1::uuid',
  run_requests: 'run_id = $1::uuid',
  attachments: 'run_id = $1::uuid',
  audit_entries: 'subject_uid = $1::text',
  starts: 'run_id = $1::uuid',
  webhook_deliveries: 'id = (SELECT delivery_id FROM starts WHERE run_id = $1::uuid)',
};
const emptyTables = ['storage_changes', 'run_search_waiting', 'webhooks'];

interface Column {
  readonly name: string;
  readonly type: string;
  /** The column's default as text. Null: the column has no default, or a computed default. */
  readonly fallback: string | null;
  /** True: the default calls a function, so a simple server omits the column. */
  readonly isComputed: boolean;
}

/** A value that the simple server sends for a column when it writes a run. */
interface Value {
  readonly column: Column;
  readonly text: string;
}

/** The key is a text in the rows of the copied run; the value replaces this text in the rows of a new run. */
export type Replacements = Readonly<Record<string, string | Buffer>>;

async function columnsOf(client: pg.Client, table: string): Promise<Column[]> {
  const { rows } = await client.query<{ name: string; type: string; expression: string | null; fixed: boolean }>(
    `SELECT a.attname AS name, format_type(a.atttypid, a.atttypmod) AS type, pg_get_expr(d.adbin, d.adrelid) AS expression,
       a.attidentity <> '' OR a.attgenerated <> '' AS fixed
     FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
     WHERE a.attrelid = $1::regclass AND a.attnum > 0 AND NOT a.attisdropped`,
    [table],
  );
  const columns: Column[] = [];
  for (const { name, type, expression, fixed } of rows) {
    const isComputed = fixed || (expression?.includes('(') ?? false);
    const isConstant = expression !== null && !isComputed;
    const answer = isConstant
      ? await client.query<{ text: string }>(`SELECT (${expression})::text AS text`)
      : undefined;
    columns.push({ name, type, fallback: answer?.rows[0]?.text ?? null, isComputed });
  }
  return columns;
}

/** Returns the values of each row that the run has in the table. Leaves out null values and values that the column's default sets. */
async function valuesOf(client: pg.Client, table: string, runId: string): Promise<Value[][]> {
  const columns = await columnsOf(client, table);
  const { rows } = await client.query<Record<string, string | null>>(
    `SELECT ${columns.map(({ name }) => `${name}::text`).join(', ')} FROM ${table} WHERE ${tables[table]}`,
    [runId],
  );
  return rows.map((row) =>
    columns.flatMap((column) => {
      const text = row[column.name] ?? null;
      const isDefault = column.isComputed ? column.name !== 'id' : text === column.fallback;
      return text === null || isDefault ? [] : [{ column, text }];
    }),
  );
}

const idColumns = ['id', 'current_execution_id', 'conversation_id'];

/**
 * Creates copies of the tables in the schema `bench`, with the same columns, constraints and indexes, but without triggers and foreign
 * keys. Returns a function that writes the rows of the run `runId` to these copies, with new ids and in one transaction. The function
 * also writes the rows that triggers of the service write. If a delivery started the run, the function also counts the delivery against
 * the budget of a webhook, of another webhook at each call.
 */
export async function copyRows(
  connectionString: string,
  runId: string,
): Promise<(pool: pg.Pool, replace: Replacements) => Promise<string>> {
  const client = new pg.Client({ connectionString });
  await client.connect();
  const rows: { table: string; values: Value[] }[] = [];
  await client.query('CREATE SCHEMA IF NOT EXISTS bench');
  for (const table of [...Object.keys(tables), ...emptyTables])
    await client.query(`CREATE TABLE IF NOT EXISTS bench.${table} (LIKE ${table} INCLUDING ALL)`);
  for (const table of Object.keys(tables))
    for (const values of await valuesOf(client, table, runId)) rows.push({ table, values });
  const ids = new Set(
    rows.flatMap(({ values }) => values.flatMap(({ column, text }) => (idColumns.includes(column.name) ? text : []))),
  );
  await client.query('INSERT INTO bench.webhooks SELECT * FROM webhooks ON CONFLICT DO NOTHING');
  const webhooks = await client.query<{ uid: string }>('SELECT uid FROM bench.webhooks');
  await client.end();

  const values = rows.flatMap((row) => row.values);
  const sampleOf = (table: string, name: string) =>
    rows.find((row) => row.table === table)?.values.find(({ column }) => column.name === name)?.text ?? '';
  const webhook = sampleOf('webhook_deliveries', 'webhook_uid');
  let n = 0;
  const inserts = rows.map(({ table, values: own }, index) => {
    const names = own.map(({ column }) => column.name);
    const parameters = own.map(({ column }) => {
      n += 1;
      return `$${n}::${column.type}`;
    });
    return `row_${index} AS (INSERT INTO bench.${table} (${names.join(', ')}) VALUES (${parameters.join(', ')}))`;
  });
  const more = [
    `storage AS (INSERT INTO bench.storage_changes (team_id, bytes) VALUES ($${n + 1}::uuid, 500))`,
    `search AS (INSERT INTO bench.run_search_waiting (run_ids) VALUES (ARRAY[$${n + 2}::uuid]))`,
    ...(webhook === ''
      ? []
      : [
          `budget AS (UPDATE bench.webhooks SET payload_bytes = payload_bytes + 1000,
            recent = (recent || clock_timestamp())[greatest(1, cardinality(recent) - 58):] WHERE uid = $${n + 3}::text)`,
        ]),
  ];
  const statement = { name: 'rows', text: `WITH ${[...inserts, ...more].join(', ')} SELECT` };
  const sought = [...ids, ...(webhook === '' ? [] : [webhook])];
  const parts = values.map(({ text }) => ({ text, contained: sought.filter((id) => text.includes(id)) }));
  let turn = 0;

  return async (pool, replace) => {
    const fresh = new Map<string, string>([...ids].map((id) => [id, randomUUIDv7()]));
    turn = (turn + 1) % Math.max(1, webhooks.rows.length);
    const nextWebhook = webhooks.rows[turn]?.uid ?? '';
    if (webhook !== '') fresh.set(webhook, nextWebhook);
    const id = fresh.get(runId) ?? '';
    const sent = parts.map(({ text, contained }) => {
      const replaced = Object.hasOwn(replace, text) ? replace[text] : undefined;
      return replaced ?? contained.reduce((whole, one) => whole.replaceAll(one, fresh.get(one) ?? ''), text);
    });
    const last = webhook === '' ? [] : [nextWebhook];
    await pool.query({ ...statement, values: [...sent, sampleOf('runs', 'team_id'), id, ...last] });
    return id;
  };
}
