/** Paths of this checkout and of the data folder. */
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Settings } from '@runyard/contract/settings/settings';

const thisFile = fileURLToPath(import.meta.url);
/** Folder of this checkout, or of the npm package. */
export const root = path.resolve(path.dirname(thisFile), '../../../..');
/** The npm package has JavaScript, and a checkout TypeScript. */
const isPackage = path.extname(thisFile) === '.js';

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
 * it is started. npm replaces the folder of the npm package, so the default folder of a package is in the user's home folder. A relative
 * path from the user is relative to the current folder.
 */
export function dataFolder(settings: Settings, env: Readonly<Record<string, string | undefined>>): DataFolder {
  const ofUser = path.join(env.XDG_DATA_HOME || path.join(os.homedir(), '.local/share'), 'runyard');
  const own = isPackage ? ofUser : path.resolve(root, settings.RUNYARD_DATA_DIR);
  const folder = env.RUNYARD_DATA_DIR ? path.resolve(settings.RUNYARD_DATA_DIR) : own;
  return {
    path: folder,
    logs: path.join(folder, 'logs'),
    supervisorFile: path.join(folder, 'supervisor.json'),
    serviceFile: path.join(folder, 'service.json'),
    bootstrapKeyFile: path.join(folder, 'bootstrap-key'),
  };
}
