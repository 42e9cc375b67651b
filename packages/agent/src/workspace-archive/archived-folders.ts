import { relative, resolve } from 'node:path';

export interface ArchivedFolder {
  readonly path: string;
  /** Paths below the folder that the archive omits; each path begins with `./`. */
  readonly excluded: readonly string[];
}

/** The reason why nothing is saved or restored if the worker did not create the folders for the run. It is reported. */
export const foreignFolders =
  'The worker started the agent in a folder that was not made for this run, so nothing of it is kept. Let the worker make an empty folder for each run, named after the run.';

/** Large folders of a home that tools can recreate, such as caches. */
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

/**
 * Returns the workspace and the home. The home contains the sessions and settings of harnesses, and files that setup commands installed.
 */
export function archivedFolders(workspace: string, home: string | undefined): ArchivedFolder[] {
  const folders: ArchivedFolder[] = [{ path: workspace, excluded: [] }];
  if (home === undefined || !home.startsWith('/')) return folders;
  // If one folder is inside the other folder, archiving both would store the files of the inner folder twice.
  const isInside = (inner: string, outer: string) => !relative(resolve(outer), resolve(inner)).startsWith('..');
  if (isInside(home, workspace) || isInside(workspace, home)) return folders;
  return [...folders, { path: home, excluded: caches }];
}
