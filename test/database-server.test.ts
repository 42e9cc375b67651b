/** Tests the checks of a PostgreSQL server with real servers: poolers, roles and TLS. The service and doctor use the same checks. */
import { execFileSync, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { silentLog } from '../packages/service/src/platform/store/database/log.ts';
import { openDatabase } from '../packages/service/src/platform/store/database/open-database.ts';
import { addressOf } from '../packages/service/src/platform/store/database/server-problem.ts';
import { inspectDatabase } from '../packages/service/src/platform/store/embedded/inspect-database.ts';
import { freePort } from './support/free-port.ts';
import { type SystemServer, startSystemPostgres, systemPostgres } from './support/system-postgres.ts';

const pgbouncer = ['/usr/sbin/pgbouncer', '/usr/bin/pgbouncer'].find((file) => existsSync(file));
let folder = '';
let server: SystemServer | undefined;
const stops: (() => Promise<void>)[] = [];

beforeAll(async () => {
  if (systemPostgres === undefined) return;
  folder = await mkdtemp(path.join(tmpdir(), 'runyard-database-server-'));
  await chmod(folder, 0o755);
  const subject = ['-subj', '/CN=database.example', '-addext', 'subjectAltName=DNS:database.example'];
  const files = ['-keyout', path.join(folder, 'key.pem'), '-out', path.join(folder, 'ca.pem')];
  execFileSync('openssl', ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', ...subject, ...files], {
    stdio: 'pipe',
  });
  const [certificate = '', key = ''] = await Promise.all(
    ['ca.pem', 'key.pem'].map((name) => readFile(path.join(folder, name), 'utf8')),
  );
  server = await startSystemPostgres(systemPostgres, { tls: { certificate, key } });
  const client = new pg.Client({ connectionString: server.url });
  await client.connect();
  await client.query(`CREATE ROLE guest LOGIN PASSWORD 'secret'`);
  await client.end();
}, 120_000);
afterAll(async () => {
  for (const stop of stops) await stop();
  await server?.stop();
  await rm(folder, { recursive: true, force: true });
});

/** Returns the URL of the server with another role and parameters. */
function urlWith({ user, ...parameters }: Record<string, string>, port?: string): string {
  const url = new URL(server?.url ?? '');
  if (user !== undefined) url.username = user;
  if (port !== undefined) url.port = port;
  for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
  return url.href;
}

/** Starts a pooler before the server. Returns its port. */
async function startPooler(mode: 'transaction' | 'session'): Promise<string> {
  const port = String(await freePort());
  const { port: serverPort } = new URL(server?.url ?? '');
  const file = path.join(folder, `${mode}.ini`);
  const users = path.join(folder, 'users.txt');
  await writeFile(users, '"operator" "secret"\n');
  await writeFile(
    file,
    `[databases]\n* = host=127.0.0.1 port=${serverPort} user=operator password=secret\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = ${port}\nauth_type = plain\nauth_file = ${users}\npool_mode = ${mode}\nserver_tls_sslmode = disable\nignore_startup_parameters = extra_float_digits\nunix_socket_dir =\n`,
  );
  // PgBouncer refuses to run as root.
  const nobody = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};
  const child = spawn(pgbouncer ?? '', [file], { ...nobody, cwd: '/', stdio: ['ignore', 'ignore', 'pipe'] });
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  stops.push(async () => {
    child.kill('SIGTERM');
    await exited;
  });
  let output = '';
  for await (const chunk of child.stderr) {
    output += chunk;
    if (output.includes('process up')) return port;
  }
  throw new Error(output);
}

describe.skipIf(systemPostgres === undefined)('a PostgreSQL server', () => {
  test.skipIf(pgbouncer === undefined)('behind a pooler is refused if the pooler does not keep sessions', async () => {
    const url = urlWith({}, await startPooler('transaction'));
    const reason = expect.stringContaining('a connection pooler that does not keep sessions');
    expect(await inspectDatabase(url)).toEqual({ kind: 'server_unusable', reason });
    const opened = openDatabase({ address: addressOf(url), maxConnections: 2, log: silentLog });
    await expect(opened).rejects.toThrow(
      'The server of RUNYARD_DATABASE_URL cannot be used: its address leads to a connection pooler',
    );
  });

  test.skipIf(pgbouncer === undefined)('behind a pooler is accepted if the pooler keeps sessions', async () => {
    expect(await inspectDatabase(urlWith({}, await startPooler('session')))).toMatchObject({ kind: 'server' });
  });

  test('is refused for a role that may not create tables, with the command that repairs it', async () => {
    const problem = await inspectDatabase(urlWith({ user: 'guest' }));
    expect(problem).toMatchObject({
      kind: 'server_unusable',
      reason: expect.stringContaining('GRANT CREATE ON SCHEMA public TO "guest"'),
    });
  });

  test.each([
    ['require', {}],
    ['no-verify', {}],
    ['verify-ca', { sslrootcert: 'ca.pem' }],
  ])('with its own authority is accepted with sslmode=%s', async (sslmode, files: Record<string, string>) => {
    const given = Object.fromEntries(Object.entries(files).map(([name, file]) => [name, path.join(folder, file)]));
    expect(await inspectDatabase(urlWith({ sslmode, ...given }))).toMatchObject({ kind: 'server' });
  });

  test('with its own authority is refused with sslmode=verify-full, and the advice names the parameters of the URL', async () => {
    expect(await inspectDatabase(urlWith({ sslmode: 'verify-full' }))).toMatchObject({
      kind: 'server_unusable',
      fix: expect.stringContaining('sslrootcert=FILE'),
    });
    const named = urlWith({ sslmode: 'verify-full', sslrootcert: path.join(folder, 'ca.pem') });
    expect(await inspectDatabase(named)).toMatchObject({
      kind: 'server_unusable',
      fix: expect.stringContaining('verify-ca'),
    });
  });
});
