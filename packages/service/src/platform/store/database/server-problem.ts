import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';

/** The oldest version of PostgreSQL that works, in the form of `server_version_num`. */
export const minServerVersion = 140_000;

/**
 * Returns the address of a server from its URL. `sslmode` means what it means for `psql`: without this, the driver checks `require` like
 * `verify-full`, and refuses the certificates of managed servers.
 */
export function addressOf(url: string): { readonly connectionString: string } {
  const parsed = URL.parse(url);
  // `no-verify` is a value of the driver alone.
  const isOfDriver = parsed?.searchParams.get('sslmode') === 'no-verify';
  if (parsed === null || isOfDriver || parsed.searchParams.has('uselibpqcompat')) return { connectionString: url };
  return { connectionString: `${url}${parsed.search === '' ? '?' : '&'}uselibpqcompat=true` };
}

interface ServerRow {
  readonly version: number;
  readonly encoding: string;
  readonly standby: boolean;
  readonly role: string;
  readonly schema: string | null;
  readonly may_create: boolean;
}

const describe = `
  SELECT current_setting('server_version_num')::int AS version, current_setting('server_encoding') AS encoding,
    pg_is_in_recovery() AS standby, current_user::text AS role, current_schema()::text AS schema,
    coalesce(has_schema_privilege(current_schema(), 'CREATE'), false) AS may_create`;

/** Longest wait for a notice after the answer to the next query, milliseconds. A server sends the notice before this answer. */
const noticeMs = 2_000;

/**
 * Returns the reason why the service cannot work with this server, and how to repair it, as one sentence; null if it can. Rejects if the
 * server cannot be reached.
 */
export async function findServerProblem(config: pg.ClientConfig): Promise<string | null> {
  const client = new pg.Client(config);
  client.on('error', () => {});
  await client.connect();
  try {
    const { rows } = await client.query<ServerRow>(describe);
    const [server] = rows;
    if (server === undefined || server.version < minServerVersion)
      return `PostgreSQL ${Math.trunc((server?.version ?? 0) / 10_000)} is too old: use PostgreSQL 14 or newer`;
    if (server.encoding !== 'UTF8')
      return `the encoding of the database is ${server.encoding}: create it with ENCODING 'UTF8'`;
    if (server.standby)
      return 'it is a standby server, which cannot be written to: name the primary server in RUNYARD_DATABASE_URL';
    if (!server.may_create) {
      const schema = server.schema ?? 'public';
      return `the role ${server.role} may not create tables in the schema ${schema}: run GRANT CREATE ON SCHEMA ${schema} TO "${server.role}", or make the role the owner of the database`;
    }
    if (!(await keepsSessions(client, config)))
      return 'its address leads to a connection pooler that does not keep sessions (pool_mode transaction or statement): use the address of the server itself, or pool_mode session';
    return null;
  } finally {
    await client.end().catch(() => undefined);
  }
}

/**
 * Returns whether a connection keeps its session, by a notice that another connection sends. A pooler in transaction mode lends the session
 * that listens to other clients, so the notice does not arrive. Prepared statements, settings and locks of a session would be lost too.
 */
async function keepsSessions(client: pg.Client, config: pg.ClientConfig): Promise<boolean> {
  const channel = `runyard_probe_${process.pid}_${Math.random().toString(36).slice(2)}`;
  const arrived = new Promise<true>((resolve) => client.once('notification', () => resolve(true)));
  await client.query(`LISTEN ${channel}`);
  const sender = new pg.Client(config);
  sender.on('error', () => {});
  await sender.connect();
  const over = new AbortController();
  try {
    await sender.query(`NOTIFY ${channel}`);
    await client.query('SELECT 1');
    return await Promise.race([arrived, delay(noticeMs, false, { signal: over.signal })]);
  } finally {
    over.abort();
    await sender.end().catch(() => undefined);
  }
}
