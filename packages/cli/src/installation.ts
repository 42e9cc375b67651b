/** Where things are: this checkout, and the data folder with what the programs leave in it. */
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Settings } from '@runyard/contract/settings';

/** The folder of this checkout. */
export const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../../..');

export interface DataFolder {
  readonly path: string;
  readonly logs: string;
  /** Claim of the one supervisor of this folder. */
  readonly supervisorFile: string;
  /** Written by the service while it listens. */
  readonly serviceFile: string;
  readonly bootstrapKeyFile: string;
}

/**
 * The data folder of these settings. The default lies in the checkout, so that the command means the same from any folder;
 * a relative one that someone sets is relative to where they are.
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
