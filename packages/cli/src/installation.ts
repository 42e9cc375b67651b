/** Paths of this checkout and of the data folder. */
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Settings } from '@runyard/contract/settings/settings';

/** Folder of this checkout. */
export const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../../..');

export interface DataFolder {
  readonly path: string;
  readonly logs: string;
  /** File with the claim of the supervisor of this folder. */
  readonly supervisorFile: string;
  /** File that the service writes while it listens. */
  readonly serviceFile: string;
  readonly bootstrapKeyFile: string;
}

/**
 * Returns the data folder of these settings. The default folder is in the checkout, so that the command uses the same folder wherever
 * it is started. A relative path from the user is relative to the current folder.
 */
export function dataFolder(
  settings: Settings,
  env: Readonly<Record<string, string | undefined>>,
  cwd = process.cwd(),
): DataFolder {
  const folder = path.resolve(env.RUNYARD_DATA_DIR ? cwd : root, settings.RUNYARD_DATA_DIR);
  return {
    path: folder,
    logs: path.join(folder, 'logs'),
    supervisorFile: path.join(folder, 'supervisor.json'),
    serviceFile: path.join(folder, 'service.json'),
    bootstrapKeyFile: path.join(folder, 'bootstrap-key'),
  };
}
