/**
 * A container engine for a test. The test makes images without a registry. When the engine is disposed, all of its files and processes
 * are removed.
 */
import { execFileSync, spawn } from 'node:child_process';
import { accessSync, constants, openSync } from 'node:fs';
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { type Engine, findEngine } from '../../packages/worker/src/sandboxes/engine/engine.ts';
import { findGvisor } from '../../packages/worker/src/sandboxes/gvisor/find-gvisor.ts';
import { unmountBelow } from '../../packages/worker/src/state/disk-image.ts';
import { until } from '../../packages/worker/test/worker.ts';

const shell = '/bin/busybox';
const muslLoader = '/lib/x86_64-linux-musl/libc.so';

export interface TestEngine extends AsyncDisposable {
  readonly engine: Engine;
  /** Address of the engine, in the form of `RUNYARD_DOCKER_HOST`. */
  readonly host: string;
  /** Process id of the engine. The engine's networks are in the network namespace of this process. */
  readonly pid: number;
  /** Makes an image of a folder. `changes` are lines of a Dockerfile. */
  makeImage(name: string, folder: string, changes?: readonly string[]): Promise<void>;
  /** Makes a folder with a shell and the usual commands, and nothing else. */
  makeRoot(): Promise<string>;
  /** Returns the names of all containers, also of those that do not run. */
  containers(): Promise<string[]>;
}

const isExecutable = (file: string): boolean => {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
};

/** Returns the reason why no engine can run on this machine, or undefined if an engine can run. */
function missing(): string | undefined {
  if (process.getuid?.() !== 0) return 'only root can start a container engine';
  if (!isExecutable('/usr/sbin/dockerd')) return 'no container engine is installed (package docker.io)';
  return isExecutable(shell) ? undefined : 'the package busybox-static is not installed';
}

export const hasMusl = isExecutable(muslLoader);

/**
 * Networks of an engine's containers: none; one bridge in which the machine has this address (`172.30.0.1/24`); or all that the engine can
 * make, with its own rules of iptables, in a network namespace of the engine.
 */
type Networks = { readonly kind: 'none' | 'namespace' } | { readonly kind: 'bridge'; readonly address: string };

const networkFlags = (networks: Networks): string[] => {
  if (networks.kind === 'namespace') return [];
  return ['--iptables=false', networks.kind === 'bridge' ? `--bip=${networks.address}` : '--bridge=none'];
};

/** Starts an engine, or returns the reason why it did not start. */
export async function startTestEngine(networks: Networks = { kind: 'none' }): Promise<TestEngine | string> {
  const reason = missing();
  if (reason !== undefined) return reason;
  const folder = await mkdtemp(path.join(tmpdir(), 'runyard-engine-'));
  const socket = path.join(folder, 'd.sock');
  const log = path.join(folder, 'log');
  const out = openSync(log, 'a');
  const flags = ['--storage-driver', 'vfs', ...networkFlags(networks)];
  // Use `--network=none`, because gVisor finds no network namespace of its own if the test machine is itself a container.
  const gvisor = await findGvisor().catch(() => undefined);
  const args = ['--network=none', '--host-uds=open', `--platform=${gvisor?.platform}`];
  const runtimes = gvisor === undefined ? {} : { runsc: { path: gvisor.program, runtimeArgs: args } };
  const settings = path.join(folder, 'daemon.json');
  await writeFile(settings, JSON.stringify({ runtimes }));
  const places = [
    '--config-file',
    settings,
    '--data-root',
    `${folder}/data`,
    '--exec-root',
    `${folder}/exec`,
    '--pidfile',
    `${folder}/pid`,
  ];
  const command = ['/usr/sbin/dockerd', ...places, '-H', `unix://${socket}`, ...flags];
  const enclosed = ['unshare', '--net', 'sh', '-c', 'ip link set lo up && exec "$@"', 'sh', ...command];
  const [program = '', ...words] = networks.kind === 'namespace' ? enclosed : command;
  const daemon = spawn(program, words, { stdio: ['ignore', out, out] });
  const ended = new Promise<void>((resolve) => daemon.once('exit', () => resolve()));
  const stop = async (): Promise<void> => {
    daemon.kill('SIGTERM');
    await ended;
    await unmountBelow(folder);
    await rm(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 200 });
  };
  let engine: Engine | undefined;
  try {
    await until(async () => {
      if (daemon.exitCode !== null) throw new Error((await readFile(log, 'utf8')).trim().split('\n').at(-1));
      engine = await findEngine(socket).then(
        (found) => found.engine,
        () => undefined,
      );
      return engine !== undefined;
    });
  } catch (error) {
    await stop();
    return `the container engine does not start: ${(error as Error).message}`;
  }
  const connected = engine as unknown as Engine;
  let roots = 0;
  return {
    engine: connected,
    host: `unix://${socket}`,
    pid: daemon.pid ?? 0,
    async makeImage(name, from, changes = []) {
      const tar = execFileSync('tar', ['-C', from, '-c', '.'], { maxBuffer: 1 << 28 });
      const [repo = '', tag = ''] = name.split(':');
      // Pass `changes` in the query, because the engine accepts the list only there.
      const query = new URLSearchParams([
        ['fromSrc', '-'],
        ['repo', repo],
        ['tag', tag],
      ]);
      for (const change of changes) query.append('changes', change);
      const answer = await connected.call<unknown>('POST', `/images/create?${query}`, { tar });
      if (JSON.stringify(answer)?.includes('error')) throw new Error(JSON.stringify(answer));
    },
    async makeRoot() {
      roots += 1;
      const root = path.join(folder, `root-${roots}`);
      await makeShellRoot(root);
      return root;
    },
    async containers() {
      const found = await connected.call<{ Names: string[] }[]>('GET', '/containers/json?all=1');
      return found.flatMap(({ Names }) => Names);
    },
    [Symbol.asyncDispose]: stop,
  };
}

/** Makes a root folder with a shell and the usual commands, and nothing else. */
export async function makeShellRoot(root: string): Promise<void> {
  await mkdir(path.join(root, 'bin'), { recursive: true });
  await cp(shell, path.join(root, 'bin/busybox'));
  for (const name of execFileSync(shell, ['--list'], { encoding: 'utf8' }).trim().split('\n'))
    if (name !== 'busybox') await symlink('busybox', path.join(root, 'bin', name));
}

/** Copies the libraries of musl, and nothing of glibc, into a root folder. */
export async function addMusl(root: string): Promise<void> {
  await mkdir(path.join(root, 'lib'));
  await cp(muslLoader, path.join(root, 'lib/ld-musl-x86_64.so.1'));
}
