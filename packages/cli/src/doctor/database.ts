import { minServerVersion } from '@runyard/service/store/database/database';
import { locateBinaries } from '@runyard/service/store/embedded/binaries';
import pg from 'pg';
import type { Context } from '../context.ts';
import type { Finding } from './finding.ts';

const name = 'database';

/** The embedded PostgreSQL is installed, or the server that RUNYARD_DATABASE_URL names answers and is new enough. */
export async function checkDatabase(context: Context): Promise<Finding> {
  const url = context.settings.RUNYARD_DATABASE_URL;
  if (url === undefined) {
    try {
      const { version } = await locateBinaries();
      return { name, level: 'good', detail: `embedded PostgreSQL ${version.split('-')[0]} in the data folder` };
    } catch (error) {
      return { name, level: 'bad', detail: error instanceof Error ? error.message : String(error) };
    }
  }
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 5000 });
  client.on('error', () => {});
  try {
    await client.connect();
    const { rows } = await client.query<{ number: string; text: string }>(
      "SELECT current_setting('server_version_num') AS number, current_setting('server_version') AS text",
    );
    const [row] = rows;
    const where = `${client.host}:${client.port}`;
    if (!row || Number(row.number) < minServerVersion) {
      return {
        name,
        level: 'bad',
        detail: `PostgreSQL ${row?.text} at ${where} is too old`,
        mend: 'use PostgreSQL 14 or newer',
      };
    }
    return { name, level: 'good', detail: `PostgreSQL ${row.text} at ${where}` };
  } catch (error) {
    // The driver's messages name host, user and database, never the password.
    const reason = error instanceof Error ? error.message || error.name : String(error);
    return {
      name,
      level: 'bad',
      detail: `the server of RUNYARD_DATABASE_URL cannot be used: ${reason}`,
      mend: 'check the URL and that the server runs, or unset RUNYARD_DATABASE_URL to use the embedded PostgreSQL',
    };
  } finally {
    await client.end().catch(() => undefined);
  }
}
