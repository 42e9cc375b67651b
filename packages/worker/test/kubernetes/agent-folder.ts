/** Makes a folder with the files of the agent's image. */
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { sidecarContent } from '../../src/sidecar/content.ts';

/**
 * Returns the files that `bin/build-sidecar-image --readable-node` puts into the image. `entry`: path of the agent's `main.ts` or of a
 * program that replaces the agent.
 */
export const agentImageContent = (entry: string) =>
  sidecarContent({
    root: path.resolve(import.meta.dirname, '../../../..'),
    entry,
    busybox: '/bin/busybox',
    readableNode: true,
  });

/** Writes the files of the image into a folder. Returns the folder. */
export async function makeAgentFolder(parent: string, entry: string): Promise<string> {
  const folder = path.join(parent, 'agent');
  await mkdir(folder, { mode: 0o755 });
  for (const { name, mode, content } of await agentImageContent(entry)) {
    const at = path.join(folder, name);
    if (content === 'folder') await mkdir(at, { mode });
    else if ('link' in content) await symlink(content.link, at);
    else await writeFile(at, content.bytes, { mode });
  }
  return folder;
}
