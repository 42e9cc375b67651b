import { relative, resolve } from 'node:path';

/** A folder that is kept, and what of it is not: paths below it that begin with `./`. */
export interface ArchivedFolder {
  folder: string;
  without: readonly string[];
}

/** Why nothing is kept or restored where the worker did not make the folders for the run. */
export const foreignFolders =
  'The worker started the agent in a folder that was not made for this run, so nothing of it is kept. Let the worker make an empty folder for each run, named after the run.';

/** What tools fetch again by themselves, and what takes long to pack and nobody misses. */
const caches = [
  '.bun/install/cache',
  '.cache',
  '.cargo/registry',
  '.gradle/caches',
  '.local/share/Trash',
  '.local/share/pnpm/store',
  '.m2/repository',
  '.npm/_cacache',
  '.npm/_logs',
  '.nuget/packages',
  '.pnpm-store',
  '.rustup',
  'go/pkg',
].map((path) => `./${path}`);

/** Workspace and home: sessions and settings of harnesses, and what setup commands installed, are in the home. */
export function archivedFolders(workspace: string, home: string | undefined): ArchivedFolder[] {
  const roots: ArchivedFolder[] = [{ folder: workspace, without: [] }];
  if (home === undefined || !home.startsWith('/')) return roots;
  // One in the other would be kept twice.
  const isInside = (inner: string, outer: string) => !relative(resolve(outer), resolve(inner)).startsWith('..');
  if (isInside(home, workspace) || isInside(workspace, home)) return roots;
  return [...roots, { folder: home, without: caches }];
}
