import path from 'node:path';

/** The places of one sandbox on the machine. */
export interface SandboxPlaces {
  /** File of the disk image. It exists only if the sandbox has a separate disk. */
  readonly image: string;
  /** Folder with `workspace` and `home`, and mount point of the disk. The sandbox cannot write to it. */
  readonly top: string;
  readonly workspace: string;
  readonly home: string;
}

export function sandboxPlaces(stateRoot: string, id: string): SandboxPlaces {
  const top = path.join(stateRoot, 's', id);
  return {
    image: path.join(stateRoot, 'disks', `${id}.img`),
    top,
    workspace: path.join(top, 'workspace'),
    home: path.join(top, 'home'),
  };
}
