import pg from 'pg';
import { addressOf, findServerProblem } from '../database/server-problem.ts';
import { locateBinaries } from './binaries.ts';

/** Which database the service would use, and whether the service can use this database. `version` is the version of PostgreSQL. */
export type DatabaseInspection =
  | { readonly kind: 'embedded'; readonly version: string }
  | { readonly kind: 'embedded_missing'; readonly reason: string }
  /** `aheadMs`: by how much the clock of the server is ahead of the clock of this machine. */
  | { readonly kind: 'server'; readonly version: string; readonly address: string; readonly aheadMs: number }
  /** `fix`: absent if `reason` also says how to repair it. */
  | { readonly kind: 'server_unusable'; readonly reason: string; readonly fix?: string };

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
  const config = { ...addressOf(url), connectionTimeoutMillis: 5000, query_timeout: 5000 };
  const client = new pg.Client(config);
  client.on('error', () => {});
  try {
    await client.connect();
    const askedAt = Date.now();
    const { rows } = await client.query<{ version: string; ms: string }>(
      "SELECT current_setting('server_version') AS version, extract(epoch FROM clock_timestamp()) * 1000 AS ms",
    );
    const middle = (askedAt + Date.now()) / 2;
    const problem = await findServerProblem(config);
    if (problem !== null) return { kind: 'server_unusable', reason: problem };
    const { version = '', ms = middle } = rows[0] ?? {};
    return { kind: 'server', version, address: `${client.host}:${client.port}`, aheadMs: Number(ms) - middle };
  } catch (error) {
    // The reason may be shown: messages of the driver name the host, the user and the database, but never the password.
    const reason = error instanceof Error ? error.message || error.name : String(error);
    return { kind: 'server_unusable', reason, fix: fixOf(error) };
  } finally {
    await client.end().catch(() => undefined);
  }
}

/** Errors of Node about a certificate that no known authority has signed. */
const untrusted = new Set([
  'SELF_SIGNED_CERT_IN_CHAIN',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
]);

function fixOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  if (untrusted.has(code))
    return 'add sslrootcert=FILE with the certificate of the authority to the URL, or sslmode=require to encrypt without a check (docs/operate.md)';
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID')
    return 'use the host name of the certificate in the URL, or sslmode=verify-ca, which does not check the name';
  return 'check the URL and that the server runs, or unset RUNYARD_DATABASE_URL to use the embedded PostgreSQL';
}
