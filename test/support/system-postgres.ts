/**
 * Starts a PostgreSQL server from the packages of the system. It listens on a TCP port of loopback and asks for passwords, like the
 * server of an operator.
 */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { chmod, chown, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { chooseAccount, runAs } from '../../packages/service/src/platform/store/embedded/account.ts';
import { freePort } from './free-port.ts';

/** Folder of PostgreSQL's programs, or undefined if none are installed. */
export const systemPostgres: string | undefined = globSync('/usr/lib/postgresql/*/bin').find((folder) =>
  existsSync(path.join(folder, 'initdb')),
);

export interface SystemServer {
  readonly url: string;
  /** Stops or continues all processes of the server. A stopped server accepts connections, but answers nothing. */
  signal(name: 'SIGSTOP' | 'SIGCONT'): void;
  stop(): Promise<void>;
}

interface SystemServerOptions {
  /** Certificate and key in PEM. With them, clients may use TLS. */
  readonly tls?: { readonly certificate: string; readonly key: string };
}

export async function startSystemPostgres(programs: string, { tls }: SystemServerOptions = {}): Promise<SystemServer> {
  const folder = await mkdtemp(path.join(tmpdir(), 'runyard-system-postgres-'));
  const account = await chooseAccount(folder);
  const passwordFile = path.join(folder, 'password');
  await writeFile(passwordFile, 'secret');
  for (const file of [folder, passwordFile]) await chown(file, account.uid, account.gid);
  await chmod(folder, 0o700);
  const data = path.join(folder, 'data');
  const options = { ...runAs(account), cwd: folder, env: { PATH: '/usr/bin:/bin' } };
  const made = spawnSync(
    path.join(programs, 'initdb'),
    [
      '-D',
      data,
      '-U',
      'operator',
      '-E',
      'UTF8',
      '--locale=C',
      '--auth=scram-sha-256',
      `--pwfile=${passwordFile}`,
      '--no-sync',
    ],
    { ...options, encoding: 'utf8' },
  );
  if (made.status !== 0) throw new Error(made.stderr);
  const port = await freePort();
  const settings = ['listen_addresses=127.0.0.1', `port=${port}`, 'unix_socket_directories=', 'fsync=off'];
  if (tls !== undefined) {
    for (const [name, text] of Object.entries(tls)) {
      const file = path.join(folder, name);
      await writeFile(file, text, { mode: 0o600 });
      await chown(file, account.uid, account.gid);
    }
    settings.push('ssl=on', `ssl_cert_file=${folder}/certificate`, `ssl_key_file=${folder}/key`);
  }
  const child = spawn(
    path.join(programs, 'postgres'),
    ['-D', data, ...settings.flatMap((setting) => ['-c', setting])],
    {
      ...options,
      stdio: ['ignore', 'ignore', 'pipe'],
    },
  );
  let output = '';
  for await (const chunk of child.stderr) {
    output += chunk;
    if (output.includes('ready to accept connections')) break;
  }
  if (!output.includes('ready to accept connections')) throw new Error(output);
  return {
    url: `postgresql://operator:secret@127.0.0.1:${port}/postgres`,
    signal: (name) => {
      const { pid = 0 } = child;
      const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').filter(Boolean);
      for (const each of [pid, ...children.map(Number)]) process.kill(each, name);
    },
    stop: async () => {
      child.kill('SIGINT');
      if (child.exitCode === null) await once(child, 'exit');
      await rm(folder, { recursive: true, force: true });
    },
  };
}
