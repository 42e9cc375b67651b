import pg from 'pg';
import { minServerVersion } from '../database/database.ts';
import { locateBinaries } from './binaries.ts';

/** Which database the service would use, and whether the service can use this database. `version` is the version of PostgreSQL. */
export type DatabaseInspection =
  | { readonly kind: 'embedded'; readonly version: string }
  | { readonly kind: 'embedded_missing'; readonly reason: string }
  | { readonly kind: 'server'; readonly version: string; readonly address: string }
  | { readonly kind: 'server_too_old'; readonly version: string; readonly address: string }
  | { readonly kind: 'server_unusable'; readonly reason: string };

/** Checks the server at `url`. If `url` is undefined, checks whether the embedded PostgreSQL is installed. Changes nothing and never rejects. */
export async function inspectDatabase(url: string | undefined): Promise<DatabaseInspection> {
  if (url !== undefined) return inspectServer(url);
  try {
    const { version } = await locateBinaries();
    return { kind: 'embedded', version: version.split('-')[0] ?? version };
  } catch (error) {
    return { kind: 'embedded_missing', reason: error instanceof Error ? error.message : String(error) };
  }
}

async function inspectServer(url: string): Promise<DatabaseInspection> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 5000 });
  client.on('error', () => {});
  try {
    await client.connect();
    const { rows } = await client.query<{ number: string; text: string }>(
      "SELECT current_setting('server_version_num') AS number, current_setting('server_version') AS text",
    );
    const [row = { number: '0', text: 'of unknown version' }] = rows;
    const address = `${client.host}:${client.port}`;
    const kind = Number(row.number) < minServerVersion ? 'server_too_old' : 'server';
    return { kind, version: row.text, address };
  } catch (error) {
    // The reason may be shown: messages of the driver name the host, the user and the database, but never the password.
    return {
      kind: 'server_unusable',
      reason: error instanceof Error ? error.message || error.name : String(error),
    };
  } finally {
    await client.end().catch(() => undefined);
  }
}
