/**
 * Finds the configuration in the machine's /etc that installed programs need. Packages put links into /usr that lead there: a Java runtime
 * does not start without /etc/java-17-openjdk, for example.
 */
import { randomUUID } from 'node:crypto';
import { type Dirent, readdirSync, readlinkSync, statSync } from 'node:fs';
import { readdir, readFile, rename, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';

/** Folders of /usr with programs and their data. In /usr/bin, links lead to /etc/alternatives, which sandboxes have anyway. */
const searched = ['lib', 'lib64', 'share', 'local/lib', 'local/share'];
/** Folders with many files and no configuration. */
const skipped = new Set([
  ...['man', 'doc', 'info', 'locale', 'zoneinfo', 'icons', 'firmware', 'modules'],
  ...['python3', 'dist-packages', 'site-packages', 'node_modules'],
]);

/** Configuration that programs read without a link in /usr. */
const alsoRead = /^(?:fonts|perl|php|R|ImageMagick-\d+)$/;

/** Names of files that may hold secrets of the machine or of its users. */
const secretName =
  /^(?:environment|fstab|hosts|hostname|passwd|group|resolv\.conf|sudoers.*)$|shadow|secret|passw|credential|token|private|netrc|keytab|\.(?:key|p12|pfx|jks)$/i;
/** Texts in configuration that may be secrets, such as a password of a repository in the settings of Maven. */
const secretText = /<(?:password|passphrase|privateKey)>[^<$]|_authToken|\bpassword\s*=\s*\S|PRIVATE KEY-----/i;

/** The settings of Maven have an example of a password in a comment. */
const comment = /<!--[\s\S]*?-->/g;

/** Most bytes of one file, and of all files together. */
const mostFileBytes = 1024 * 1024;
const mostBytes = 16 * 1024 * 1024;
const mostFiles = 2_000;

/** Returns the paths below `etc` to which links in `usr` lead. Both are absolute paths. */
function linkedPaths(usr: string, etc: string): string[] {
  const found = new Set<string>();
  const search = (folder: string): void => {
    let entries: Dirent[];
    try {
      entries = readdirSync(path.join(usr, folder), { withFileTypes: true });
    } catch {
      return;
    }
    for (const entry of entries) {
      const name = `${folder}/${entry.name}`;
      if (entry.isDirectory()) {
        if (!skipped.has(entry.name)) search(name);
      } else if (entry.isSymbolicLink()) {
        const place = path.join(usr, name);
        const target = path.resolve(path.dirname(place), readlinkSync(place));
        if (target.startsWith(`${etc}/`)) found.add(target.slice(etc.length + 1));
      }
    }
  };
  for (const folder of searched) search(folder);
  return [...found];
}

/** Files that change whenever a package is installed or removed. */
const packageLists = [
  '/var/lib/dpkg/status',
  '/var/lib/rpm/rpmdb.sqlite',
  '/var/lib/pacman/local',
  '/lib/apk/db/installed',
];

/**
 * Returns the paths of the configuration that programs need. `memory`: the file with the result of the last search, which is used until
 * packages change.
 */
async function neededPaths({ usr, etc, memory }: Places): Promise<readonly string[]> {
  const times = [usr, etc, ...packageLists].map((file) => statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0);
  const key = JSON.stringify([usr, etc, times]);
  const [last, ...paths] = (await readFile(memory, 'utf8').catch(() => '')).split('\n');
  if (last === key) return paths;
  const names = await readdir(etc).catch(() => []);
  const found = [...linkedPaths(usr, etc), ...names.filter((name) => alsoRead.test(name))];
  const plain = found.filter((name) => !name.includes('\n'));
  const making = `${memory}.${randomUUID()}`;
  await writeFile(making, [key, ...plain].join('\n'));
  await rename(making, memory);
  return plain;
}

interface Places {
  readonly usr: string;
  readonly etc: string;
  readonly memory: string;
}

/**
 * Returns the text files that installed programs need from the machine's /etc, each with its path below `etc`. Leaves out what not every
 * user may read, and what may hold a secret by its name or its text. `isThere`: the path is in sandboxes in another way.
 */
export async function etcOfPrograms(
  places: Places,
  isThere: (name: string) => boolean,
): Promise<ReadonlyMap<string, string>> {
  const { etc } = places;
  const files = new Map<string, string>();
  let bytes = 0;
  const add = async (name: string): Promise<void> => {
    if (isThere(name) || name.split('/').some((part) => secretName.test(part)) || files.size >= mostFiles) return;
    const place = path.join(etc, name);
    const found = await stat(place).catch(() => undefined);
    if (found?.isDirectory()) {
      if ((found.mode & 0o005) !== 0o005) return;
      for (const each of (await readdir(place).catch(() => [])).toSorted()) await add(`${name}/${each}`);
      return;
    }
    if (!found?.isFile() || (found.mode & 0o004) === 0) return;
    if (found.size > mostFileBytes || bytes + found.size > mostBytes) return;
    const text = await readFile(place, 'utf8').catch(() => '');
    if (secretText.test(text.replaceAll(comment, ''))) return;
    bytes += found.size;
    files.set(name, text);
  };
  for (const name of await neededPaths(places)) if (await areOpen(etc, path.dirname(name))) await add(name);
  return files;
}

/** Returns whether every user may open the folder and all folders above it. */
async function areOpen(etc: string, folder: string): Promise<boolean> {
  if (folder === '.') return true;
  const found = await stat(path.join(etc, folder)).catch(() => undefined);
  return found !== undefined && (found.mode & 0o001) !== 0 && (await areOpen(etc, path.dirname(folder)));
}
