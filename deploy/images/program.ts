/** Finds the files of the program: the sources of our packages, and the npm packages that they need. */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import path from 'node:path';
import type { TarEntry } from '../../packages/worker/src/sidecar/archive.ts';

interface LockedPackage {
  readonly version?: string;
  readonly link?: true;
  readonly resolved?: string;
  readonly license?: string;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
  readonly peerDependenciesMeta?: Readonly<Record<string, { readonly optional?: boolean }>>;
}

export interface NpmPackage {
  readonly name: string;
  readonly version: string;
  readonly license: string | undefined;
  /** The folder of the package in the checkout, such as `node_modules/zod`. */
  readonly place: string;
}

/** The packages of the checkout whose sources the images contain, including the built dashboard. */
const own = ['contract', 'system', 'definitions', 'client', 'service', 'worker', 'agent', 'cli'];

/** Returns the npm packages that the program needs, by their folders. Skips packages for other platforms, which are not installed. */
export function npmPackages(root: string): NpmPackage[] {
  const { packages }: { packages: Record<string, LockedPackage> } = JSON.parse(
    readFileSync(path.join(root, 'package-lock.json'), 'utf8'),
  );
  const seen = new Set<string>();
  const found: NpmPackage[] = [];
  const visit = (place: string | undefined): void => {
    const item = packages[place ?? 'none'];
    if (place === undefined || item === undefined || seen.has(place)) return;
    seen.add(place);
    if (place.includes('node_modules/')) {
      if (!isFolder(path.join(root, place))) return;
      const name = place.split('node_modules/').at(-1) ?? '';
      found.push({ name, version: item.version ?? '', license: item.license, place });
    }
    const peers = Object.keys(item.peerDependencies ?? {}).filter(
      (name) => item.peerDependenciesMeta?.[name]?.optional !== true,
    );
    // The optional packages of ours are Node and PostgreSQL. The images have a Node, and no database.
    const optional = place.includes('node_modules/') ? item.optionalDependencies : {};
    const names = [...Object.keys({ ...item.dependencies, ...optional }), ...peers];
    for (const name of names) visit(placeOf(packages, place, name));
  };
  // The root names the packages that only some installations need.
  for (const place of ['', ...own.map((name) => `packages/${name}`)]) visit(place);
  return found.filter(({ name }) => !name.startsWith('@types/')).sort((a, b) => (a.place < b.place ? -1 : 1));
}

/** Returns the folder in which Node finds the package `name` when code of the package at `from` imports it. */
function placeOf(packages: Readonly<Record<string, LockedPackage>>, from: string, name: string): string | undefined {
  for (let folder = from; ; folder = folder.slice(0, Math.max(0, folder.lastIndexOf('/')))) {
    const place = `${folder === '' ? '' : `${folder}/`}node_modules/${name}`;
    const item = packages[place];
    if (item?.link) return item.resolved;
    if (item !== undefined) return place;
    if (folder === '') return undefined;
  }
}

const isFolder = (folder: string): boolean => {
  try {
    return readdirSync(folder).length > 0;
  } catch {
    return false;
  }
};

/** Returns the files below `/runyard`. Throws if the dashboard is not built. */
export function programFiles(root: string): TarEntry[] {
  if (!isFolder(path.join(root, 'packages/dashboard/dist'))) throw new Error('the dashboard is not built');
  const read = (name: string): TarEntry => ({
    name,
    mode: 0o644,
    content: { bytes: readFileSync(path.join(root, name)) },
  });
  const files = [
    ...['LICENSE', 'package.json'].map(read),
    ...walk(root, 'packages/dashboard/dist', () => true),
    ...own.flatMap((name) => [
      read(`packages/${name}/package.json`),
      ...walk(root, `packages/${name}/src`, (file) => !/\.test\.tsx?$/.test(file)),
    ]),
    ...npmPackages(root).flatMap(({ place }) => walk(root, place, isUsed)),
    ...own.map(
      (name): TarEntry => ({
        name: `node_modules/@runyard/${name}`,
        mode: 0o777,
        content: { link: `../../packages/${name}` },
      }),
    ),
  ];
  return files.map((entry) => ({ ...entry, name: `runyard/${entry.name}` }));
}

/**
 * Returns false for files that only developers need: types, sources, source maps and manuals. Licences stay in the image.
 */
const isUsed = (file: string): boolean =>
  !/\.(?:[cm]?tsx?|map|markdown|md)$/i.test(file) || /\/(?:licen[cs]e|notice|copying)[^/]*$/i.test(file);

/** Returns the files of a folder, without packages inside the folder. */
function walk(root: string, folder: string, isWanted: (file: string) => boolean): TarEntry[] {
  return readdirSync(path.join(root, folder), { withFileTypes: true }).flatMap((each): TarEntry[] => {
    const name = `${folder}/${each.name}`;
    if (each.isDirectory()) return each.name === 'node_modules' ? [] : walk(root, name, isWanted);
    if (!isWanted(name)) return [];
    const file = path.join(root, name);
    if (each.isSymbolicLink()) return [{ name, mode: 0o777, content: { link: readlinkSync(file) } }];
    const bytes = readFileSync(file);
    return [{ name, mode: isProgram(bytes) ? 0o755 : 0o644, content: { bytes } }];
  });
}

/**
 * Returns true if the file begins like an ELF program or a script. File modes are not used, because they depend on the umask of the
 * checkout.
 */
const isProgram = (bytes: Buffer): boolean =>
  bytes.subarray(0, 4).toString('latin1') === '\x7fELF' || bytes.subarray(0, 2).toString('latin1') === '#!';
