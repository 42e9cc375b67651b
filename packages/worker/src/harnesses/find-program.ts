import { constants } from 'node:fs';
import { access, readFile, realpath } from 'node:fs/promises';
import path from 'node:path';
import type { HarnessPreset } from '@runyard/contract/agent/harness-presets/preset';

/** A program of a preset on this machine. `version` is undefined if the file of the program does not belong to the preset's npm package. */
export interface FoundProgram {
  readonly file: string;
  readonly version: string | undefined;
}

/** Folders with programs of the machine that every sandbox can see. */
const systemFolders = ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin'];

/**
 * Finds the program of a preset in the folders that sandboxes can see: first in `harnessDir`, then in the system's folders. Returns
 * undefined if the program is not installed.
 */
export async function findProgram(
  { program }: HarnessPreset,
  harnessDir: string | undefined,
): Promise<FoundProgram | undefined> {
  const folders = [...(harnessDir === undefined ? [] : [path.join(harnessDir, 'bin')]), ...systemFolders];
  for (const folder of folders) {
    const file = path.join(folder, program.command);
    const isThere = await access(file, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (isThere) return { file, version: await versionOf(await realpath(file), program.package) };
  }
  return undefined;
}

/** Returns the version in the package.json above a file, if that package.json belongs to the package. */
async function versionOf(file: string, packageName: string): Promise<string | undefined> {
  for (let folder = path.dirname(file); folder !== path.dirname(folder); folder = path.dirname(folder)) {
    const text = await readFile(path.join(folder, 'package.json'), 'utf8').catch(() => undefined);
    if (text === undefined) continue;
    try {
      const { name, version } = JSON.parse(text) as { name?: unknown; version?: unknown };
      if (name === packageName && typeof version === 'string') return version;
    } catch {
      return undefined;
    }
  }
  return undefined;
}

/** Returns true if `version` is older than `least`. Both have the form 1.2.3, with or without a label such as `-preview.1` at the end. */
export function isOlder(version: string, least: string): boolean {
  const numbers = (text: string) => text.split(/[.+-]/, 3).map((part) => Number.parseInt(part, 10) || 0);
  const [ours, theirs] = [numbers(version), numbers(least)];
  for (const [index, number] of theirs.entries()) {
    const other = ours[index] ?? 0;
    if (other !== number) return other < number;
  }
  return false;
}
