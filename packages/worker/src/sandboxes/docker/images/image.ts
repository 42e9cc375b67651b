import path from 'node:path';
import { harnessFolderInside } from '@runyard/contract/agent/harness-presets/presets';
import { inside } from '../../bubblewrap/arguments.ts';

/** Facts of the engine about the image of a sandbox. */
export interface ContainerImage {
  /**
   * Digest of the image's content. The container is created with this digest and not with the name, because the name may mean another
   * image at that time.
   */
  readonly id: string;
  /** The environment variables of the image, as `NAME=value`. */
  readonly env: readonly string[];
  /** Folders for which the image declares volumes. */
  readonly volumes: readonly string[];
}

/** Runyard's own folders, in which an image may not declare a volume. */
export const ownFolders = ['/opt/runyard', '/run/runyard', inside.workspace, inside.home, harnessFolderInside];
/** Folders of the kernel and of the engine, in which an image may not declare a volume either. */
const systemFolders = ['/', '/proc', '/sys', '/dev', '/etc', '/sbin', '/tmp'];

const mostVolumes = 32;

/** Returns why no sandbox may use an image with these volumes; undefined if the volumes are harmless. */
export function volumesFault(volumes: readonly string[]): string | undefined {
  if (volumes.length > mostVolumes)
    return `it asks for ${volumes.length} volumes, and at most ${mostVolumes} are allowed`;
  const bad = volumes.find(
    (volume) =>
      !/^\/[^\0]*$/.test(volume) ||
      volume.split('/').some((part) => part === '..' || part === '.') ||
      [...ownFolders, ...systemFolders].some((own) => volume.startsWith(`${own}/`)) ||
      systemFolders.includes(volume),
  );
  return bad === undefined
    ? undefined
    : `it asks for a volume at ${JSON.stringify(bad.slice(0, 200))}, where the sandbox has files of its own`;
}

/**
 * Paths of an image that must not be links. If a path is a link, the engine mounts the sandbox's folder at the target of the link. So a
 * link could make the engine mount a folder that commands can change in place of the agent's own files. Or a link could put the agent's
 * socket into a folder that commands can rename.
 */
export const noLinks = [
  ...['/tmp', inside.workspace, '/home', inside.home, '/opt', inside.runtime, harnessFolderInside],
  ...['/run', path.dirname(inside.relaySocket), '/etc'],
];
