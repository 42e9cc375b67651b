import { stat } from 'node:fs/promises';
import path from 'node:path';

/** The folders of a sandbox with its own Debian, below `system`. They are mounted at the same names below `/`. */
export const systemFolders = ['usr', 'etc', 'var'] as const;

/** The places of one sandbox on the machine. */
export interface SandboxPlaces {
  /** File of the disk image. It exists only if the sandbox has a separate disk. */
  readonly image: string;
  /** Folder with `workspace` and `home`, and mount point of the disk. The sandbox cannot write to it. */
  readonly top: string;
  readonly workspace: string;
  readonly home: string;
  /** Folder with the Debian of the sandbox. It exists only if the environment has `system`. The sandbox cannot write to it. */
  readonly system: string;
}

/** Returns the paths, below `top`, of the folders that the sandbox may write to. */
export async function writableFolders(top: string): Promise<string[]> {
  const hasSystem = await stat(path.join(top, 'system')).then(
    () => true,
    () => false,
  );
  return ['workspace', 'home', ...(hasSystem ? systemFolders.map((name) => `system/${name}`) : [])];
}

export function sandboxPlaces(stateRoot: string, id: string): SandboxPlaces {
  const top = path.join(stateRoot, 's', id);
  return {
    image: path.join(stateRoot, 'disks', `${id}.img`),
    top,
    workspace: path.join(top, 'workspace'),
    home: path.join(top, 'home'),
    system: path.join(top, 'system'),
  };
}
