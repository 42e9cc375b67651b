/**
 * Program: adds missing entries of optional packages for other platforms to the lockfile. `npm ci` refuses a lockfile without these
 * entries. But npm does not write an entry for a package that the registry does not have, for example if the registry is a mirror with
 * only the packages that were requested before. The added entries have an exact version and no checksum. npm installs an optional
 * package only on the platform that the package is made for.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';

interface LockedPackage {
  version?: string;
  optional?: boolean;
  dev?: boolean;
  os?: string[];
  cpu?: string[];
  libc?: string[];
  optionalDependencies?: Record<string, string>;
}

export interface Lockfile {
  packages: Record<string, LockedPackage>;
}

export interface MissingPackage {
  readonly name: string;
  readonly version: string;
  readonly neededBy: string;
}

const lockfilePath = path.resolve(import.meta.dirname, '../../package-lock.json');

export function readLockfile(): Lockfile {
  return JSON.parse(readFileSync(lockfilePath, 'utf8'));
}

/** Returns the optional dependencies of locked packages that have no entry in the lockfile. */
export function findMissing(lock: Lockfile): MissingPackage[] {
  return Object.entries(lock.packages).flatMap(([at, item]) =>
    Object.entries(item.optionalDependencies ?? {})
      .filter(([name]) => !placesOf(at, name).some((place) => place in lock.packages))
      .map(([name, version]) => ({ name, version, neededBy: at })),
  );
}

/** Returns the folders in which Node looks for `name` from the package at `at`: beside that package, and in each folder above. */
function placesOf(at: string, name: string): string[] {
  const parts = at === '' ? [] : at.split(/\/?node_modules\//);
  const places: string[] = [`node_modules/${name}`];
  for (let depth = parts.length; depth > 0; depth -= 1) {
    const parent = parts.slice(0, depth).join('/node_modules/');
    if (parent !== '') places.push(`${parent}/node_modules/${name}`.replace(/^\//, ''));
  }
  return places;
}

const systems = ['aix', 'android', 'darwin', 'freebsd', 'linux', 'netbsd', 'openbsd', 'openharmony', 'sunos', 'win32'];
const processors = ['arm64', 'arm', 'ia32', 'loong64', 'mips64el', 'ppc64', 'riscv64', 's390x', 'x64'];

function entryOf({ name, version }: MissingPackage, isDev: boolean): LockedPackage {
  const words = name.split(/[/-]/);
  const os = systems.find((word) => words.includes(word));
  const cpu = processors.find((word) => words.includes(word));
  if (!os || !cpu || !/^\d/.test(version))
    throw new Error(`${name}@${version}: neither platform nor exact version is clear`);
  const libc = words.some((word) => word.startsWith('musl')) ? ['musl'] : os === 'linux' ? ['glibc'] : undefined;
  return { version, cpu: [cpu], ...(isDev ? { dev: true } : {}), ...(libc ? { libc } : {}), optional: true, os: [os] };
}

if (import.meta.main) {
  const lock = readLockfile();
  for (const missing of findMissing(lock)) {
    lock.packages[`node_modules/${missing.name}`] = entryOf(missing, lock.packages[missing.neededBy]?.dev === true);
    console.log(`${missing.name}@${missing.version}`);
  }
  const sorted = Object.entries(lock.packages).sort(([a], [b]) => a.localeCompare(b, 'en'));
  lock.packages = Object.fromEntries(sorted);
  writeFileSync(lockfilePath, `${JSON.stringify(lock, null, 2)}\n`);
}
