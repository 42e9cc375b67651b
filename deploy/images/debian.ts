/** Finds the files of installed Debian packages in the database of dpkg(1). */
import { createHash } from 'node:crypto';
import { existsSync, lstatSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import path from 'node:path';
import type { TarEntry } from '../../packages/worker/src/sidecar/archive.ts';

export interface DebianPackage {
  readonly name: string;
  readonly version: string;
  readonly architecture: string;
  /** Each group lists alternative packages: one package of each group must be installed. */
  readonly needs: readonly (readonly string[])[];
  /** The package's paragraph in dpkg's status file. */
  readonly paragraph: string;
}

const database = '/var/lib/dpkg';

/**
 * Dependencies that the image leaves out, because no program in the image needs them: packages for documentation, for questions during an
 * installation, dpkg itself, and the Perl parts of git.
 */
const notNeeded = new Set(['debconf', 'dpkg', 'git-man', 'liberror-perl', 'openssl', 'perl']);

/** Returns true for files that the image leaves out, because no program needs them. Licences stay in the image. */
const isLeftOut = (file: string): boolean =>
  /^\/usr\/share\/(?:man|info|locale|lintian|bash-completion|bug|menu|applications|pixmaps)\//.test(file) ||
  (file.startsWith('/usr/share/doc/') && !file.endsWith('/copyright')) ||
  /^\/(?:etc\/(?:cron|init\.d|skel|update-motd|issue)|usr\/share\/ca-certificates\/|var\/)/.test(file) ||
  file.startsWith('/usr/lib/x86_64-linux-gnu/gconv/');

function installedPackages(): Map<string, DebianPackage> {
  const packages = new Map<string, DebianPackage>();
  for (const paragraph of readFileSync(`${database}/status`, 'utf8').split('\n\n')) {
    const field = (name: string): string => new RegExp(`^${name}: (.*)$`, 'm').exec(paragraph)?.[1] ?? '';
    if (!field('Status').endsWith(' installed')) continue;
    const needs = [field('Pre-Depends'), field('Depends')]
      .flatMap((list) => list.split(','))
      .map((group) => group.split('|').map((each) => each.trim().split(/[ :(]/, 1)[0] ?? ''))
      .filter(([first]) => first !== '');
    const [name, version, architecture] = [field('Package'), field('Version'), field('Architecture')];
    packages.set(name, { name, version, architecture, needs, paragraph });
  }
  return packages;
}

/** Returns the packages with these names and all their dependencies, sorted by name. Throws if a package is not installed. */
export function debianPackages(names: readonly string[]): DebianPackage[] {
  const installed = installedPackages();
  const found = new Map<string, DebianPackage>();
  const add = (name: string): void => {
    const item = installed.get(name);
    if (item === undefined) throw new Error(`the package ${name} is not installed: apt install ${names.join(' ')}`);
    if (found.has(name)) return;
    found.set(name, item);
    for (const group of item.needs) {
      // A virtual package, such as awk, has no entry in dpkg's database, so it is skipped.
      const needed = group.find((each) => installed.has(each));
      if (needed !== undefined && !notNeeded.has(needed)) add(needed);
    }
  };
  for (const name of names) add(name);
  return [...found.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** Resolves Debian's links `/bin`, `/sbin` and `/lib…` in a path. */
const merged = (file: string): string => file.replace(/^\/(bin|sbin|lib|lib32|lib64|libx32)(?=\/)/, '/usr/$1');

const infoFile = ({ name, architecture }: DebianPackage, kind: string): string => {
  const plain = `${database}/info/${name}.${kind}`;
  return existsSync(plain) ? plain : `${database}/info/${name}:${architecture}.${kind}`;
};

/**
 * Returns the files of packages, and the entries from which tools list the packages of an image (`/var/lib/dpkg/status.d`). Throws if a file
 * differs from its package, because a change of this machine must not get into an image.
 */
export function filesOf(packages: readonly DebianPackage[]): TarEntry[] {
  return packages.flatMap((item) => {
    const sums = new Map(
      readFileSync(infoFile(item, 'md5sums'), 'utf8')
        .trim()
        .split('\n')
        .map((line) => [merged(`/${line.slice(34)}`), line.slice(0, 32)]),
    );
    const files = readFileSync(infoFile(item, 'list'), 'utf8').trim().split('\n');
    const entries = files.flatMap((listed) => {
      const file = merged(listed);
      return isLeftOut(file) ? [] : entryOf(file, item.name, sums.get(file));
    });
    const status = { bytes: Buffer.from(`${item.paragraph.trim()}\n`) };
    return [...entries, { name: `var/lib/dpkg/status.d/${item.name}`, mode: 0o644, content: status }];
  });
}

function entryOf(file: string, owner: string, sum: string | undefined): TarEntry[] {
  const found = lstatSync(file, { throwIfNoEntry: false });
  // Skip folders, because the image gets the folder of each file anyway. Also skip missing files: if two packages have the same file,
  // dpkg may have moved the file of one package.
  if (found === undefined || found.isDirectory()) return [];
  const name = file.slice(1);
  if (found.isSymbolicLink()) return [{ name, mode: 0o777, content: { link: readlinkSync(file) } }];
  const bytes = readFileSync(file);
  if (sum !== undefined && createHash('md5').update(bytes).digest('hex') !== sum)
    throw new Error(`${file} is not as the package ${owner} has it: apt reinstall ${owner}`);
  // Remove set-user-id bits, so that no program in an image gains rights.
  return [{ name, mode: found.mode & 0o755, content: { bytes } }];
}

/** Returns the certificates of Debian's package, without certificates that were added on this machine. */
export function certificates(): Buffer {
  const folder = '/usr/share/ca-certificates/mozilla';
  const files = readdirSync(folder).filter((name) => name.endsWith('.crt'));
  return Buffer.concat(files.sort().map((name) => readFileSync(path.join(folder, name))));
}
