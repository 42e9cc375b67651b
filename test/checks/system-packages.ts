import { spawnSync } from 'node:child_process';
import { accessSync, constants, existsSync, globSync } from 'node:fs';
import path from 'node:path';

/** Returns whether a program is in a folder of PATH. */
export function isOnPath(name: string): boolean {
  return (process.env.PATH ?? '').split(path.delimiter).some((folder) => {
    try {
      accessSync(path.join(folder, name), constants.X_OK);
      return folder !== '';
    } catch {
      return false;
    }
  });
}

/** Returns whether Python can install a package, with an installed pip or with the pip of its module `ensurepip`. */
function canInstallPython(): boolean {
  const probe = "import importlib.util as i, sys; sys.exit(not (i.find_spec('pip') or i.find_spec('ensurepip')))";
  return spawnSync('python3', ['-c', probe], { stdio: 'ignore' }).status === 0;
}

/** Returns the folder with the programs of the newest PostgreSQL server on this machine, or null if there is none. */
export function newestPostgres(): string | null {
  const found = globSync('/usr/lib/postgresql/*/bin/postgres').map((file) => path.dirname(file));
  const version = (folder: string) => Number(path.basename(path.dirname(folder)));
  return found.sort((a, b) => version(b) - version(a))[0] ?? null;
}

const canInstall = (): boolean => process.getuid?.() === 0 && isOnPath('apt-get');

/** Returns whether the local lists of apt contain the package. Does not ask a server. */
const isKnown = (name: string): boolean => spawnSync('apt-cache', ['show', name], { stdio: 'ignore' }).status === 0;

interface WantedPackage {
  readonly name: string;
  /** Name of a package to install instead, if apt has no package `name`. */
  readonly otherwise?: string;
  readonly isThere: () => boolean;
}

const wanted: readonly WantedPackage[] = [
  { name: 'bubblewrap', isThere: () => isOnPath('bwrap') },
  { name: 'runsc', isThere: () => isOnPath('runsc') },
  { name: 'docker.io', isThere: () => existsSync('/usr/sbin/dockerd') || isOnPath('dockerd') },
  { name: 'busybox-static', isThere: () => existsSync('/bin/busybox') },
  { name: 'musl', isThere: () => globSync('/lib/ld-musl-*').length > 0 },
  { name: 'postgresql', isThere: () => newestPostgres() !== null },
  { name: 'redis-server', isThere: () => isOnPath('redis-server') },
  {
    // This browser without windows needs a third of the processor time of `chromium`.
    name: 'chromium-headless-shell',
    otherwise: 'chromium',
    isThere: () =>
      isOnPath('chromium-headless-shell') ||
      (isOnPath('chromium') && !(canInstall() && isKnown('chromium-headless-shell'))),
  },
  { name: 'pgbouncer', isThere: () => existsSync('/usr/sbin/pgbouncer') || isOnPath('pgbouncer') },
  { name: 'git-lfs', isThere: () => isOnPath('git-lfs') },
  { name: 'nginx-light', otherwise: 'nginx', isThere: () => existsSync('/usr/sbin/nginx') || isOnPath('nginx') },
  { name: 'caddy', isThere: () => isOnPath('caddy') },
  { name: 'python3-venv', isThere: canInstallPython },
  // The program promtool of this package checks metrics and alert rules.
  { name: 'prometheus', isThere: () => isOnPath('promtool') },
];

/** Installs the packages that the tests use and this machine does not have, and reports their names. This needs root and apt-get. */
export function installSystemPackages(say: (message: string) => void): void {
  const packages = wanted.filter((item) => !item.isThere());
  if (packages.length === 0) return;
  const missing = packages.map(({ name }) => name);
  if (!canInstall()) {
    say(
      `missing: ${missing.join(', ')}; what needs them is skipped. Install: sudo apt-get install -y ${missing.join(' ')}`,
    );
    return;
  }
  say(`installing with apt-get: ${missing.join(', ')} ...`);
  // Without RUNLEVEL=1, Debian's postgresql package starts a server of its own.
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' };
  const apt = (...args: string[]) => spawnSync('apt-get', args, { env, stdio: ['ignore', 'pipe', 'pipe'] });
  const install = (...names: string[]) => apt('install', '-y', '--no-install-recommends', ...names);
  if (install(...missing).status === 0) return;
  apt('update');
  // Install the packages one by one, so that a package that is not available does not stop the installation of the others.
  for (const { name, otherwise } of packages) {
    const { status, stderr } = install(name);
    if (status !== 0 && (otherwise === undefined || install(otherwise).status !== 0))
      say(`apt-get has no ${name}; what needs it is skipped:\n${String(stderr).slice(-2000)}`);
  }
}

/** Names of the packages that `installSystemPackages` installs where they are missing. */
export const systemPackageNames: readonly string[] = wanted.map(({ name }) => name);
