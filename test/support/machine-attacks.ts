/**
 * Shell scripts that try to reach files, processes and sockets of the machine from inside a sandbox. Outside of a sandbox, each script
 * prints `REACHED` and its name.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer, type Server } from 'node:net';
import os from 'node:os';
import path from 'node:path';

export interface MachineAttacks extends AsyncDisposable {
  readonly names: readonly string[];
  /** A script of all attacks, one after the other. */
  readonly script: string;
  /** Runs the script outside of a sandbox and returns its output. */
  runOutside(): string;
}

const secret = 'secret of the machine';

/**
 * Makes the targets of the attacks: a file, a process and sockets of the machine, and the workspace of another run below `stateRoot`.
 */
export async function openMachineAttacks(stateRoot: string): Promise<MachineAttacks> {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'runyard-host-'));
  const file = path.join(folder, 'key');
  await writeFile(file, secret);
  const otherRun = path.join(stateRoot, 's/other/workspace');
  await mkdir(otherRun, { recursive: true, mode: 0o700 });
  await writeFile(path.join(otherRun, 'key'), secret);
  const program: ChildProcess = spawn('sleep', [`4714.${process.pid}`], {
    env: { SERVICE_SECRET: 'yes' },
    stdio: 'ignore',
  });
  const servers: Server[] = [];
  const listen = async (at: { port: number; host: string } | { path: string }): Promise<Server> => {
    const server = createServer((socket) => socket.end(secret));
    server.on('connection', (socket) => socket.on('error', () => {}));
    server.listen(at);
    await once(server, 'listening');
    servers.push(server);
    return server;
  };
  const { port } = (await listen({ port: 0, host: '0.0.0.0' })).address() as AddressInfo;
  const socket = path.join(folder, 'docker.sock');
  const abstract = `\0runyard-probe-${process.pid}`;
  await listen({ path: socket });
  await listen({ path: abstract });
  const addresses = Object.values(os.networkInterfaces())
    .flatMap((list) => list ?? [])
    .filter(({ internal, family }) => !internal && family === 'IPv4')
    .map(({ address }) => address);

  const reads = (name: string, place: string) =>
    `case "$(cat ${place} 2>/dev/null)" in *"${secret}"*) echo "REACHED ${name}";; esac`;
  const finds = (name: string, source: string, pattern: string) =>
    `for p in /proc/[0-9]*; do tr '\\0' '\\n' <$p/${source} 2>/dev/null; done | grep -q '${pattern}' && echo "REACHED ${name}"`;
  const connects = (name: string, options: object) =>
    `node -e "require('net').connect(${JSON.stringify(options).replaceAll('"', "'").replaceAll('\0', '\\u0000').replaceAll('\\', '\\\\')}).on('connect', () => { console.log('REACHED ${name}'); process.exit(); }).on('error', () => {})"`;
  const attacks: Record<string, string> = {
    'a file': reads('a file', file),
    'a file by a link': `ln -sf / up; ${reads('a file by a link', `up${file}`)}; rm up`,
    'a file by the root of a process': reads('a file by the root of a process', `/proc/[0-9]*/root${file}`),
    'the workspace of another run': reads('the workspace of another run', `${stateRoot}/s/*/workspace/key`),
    'a process': finds('a process', 'cmdline', `^4714.${process.pid}$`),
    'an environment': finds('an environment', 'environ', '^SERVICE_SECRET=yes$'),
    'the loopback': connects('the loopback', { host: '127.0.0.1', port }),
    ...Object.fromEntries(addresses.map((host) => [host, connects(host, { host, port })])),
    'a socket': connects('a socket', { path: socket }),
    'an abstract socket': connects('an abstract socket', { path: abstract }),
  };
  const script = Object.values(attacks).join('\n');
  return {
    names: Object.keys(attacks),
    script,
    runOutside() {
      const PATH = `${path.dirname(process.execPath)}:${process.env.PATH}`;
      return execFileSync('/bin/sh', ['-c', script], {
        cwd: folder,
        encoding: 'utf8',
        env: { PATH },
        stdio: ['ignore', 'pipe', 'ignore'],
        timeout: 60_000,
      });
    },
    async [Symbol.asyncDispose]() {
      program.kill('SIGKILL');
      for (const server of servers) server.close();
      await rm(folder, { recursive: true });
      await rm(path.join(stateRoot, 's/other'), { recursive: true });
    },
  };
}
