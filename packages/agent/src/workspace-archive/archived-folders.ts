import { relative, resolve } from 'node:path';

/** A folder that is archived. */
export interface ArchivedFolder {
  readonly path: string;
  /** Paths below the folder that are left out; each begins with `./`. */
  readonly excluded: readonly string[];
}

/** Why nothing is saved or restored if the worker did not make the folders for the run. */
export const foreignFolders =
  'The worker started the agent in a folder that was not made for this run, so nothing of it is kept. Let the worker make an empty folder for each run, named after the run.';

/** Large folders of a home that tools can fill again, such as caches. */
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

/** Returns workspace and home. The home has the sessions and settings of harnesses, and what setup commands installed. */
export function archivedFolders(workspace: string, home: string | undefined): ArchivedFolder[] {
  const folders: ArchivedFolder[] = [{ path: workspace, excluded: [] }];
  if (home === undefined || !home.startsWith('/')) return folders;
  // A folder inside of the other one would be archived twice.
  const isInside = (inner: string, outer: string) => !relative(resolve(outer), resolve(inner)).startsWith('..');
  if (isInside(home, workspace) || isInside(workspace, home)) return folders;
  return [...folders, { path: home, excluded: caches }];
}
