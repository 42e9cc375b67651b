import { rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { maxSnapshotFileBytes, maxSnapshotFiles } from '@runyard/contract/limits';
import { mimeTypeOf } from '@runyard/contract/wire/mime-types';
import { openChunks, pathOf } from '../artifacts/upload-file.ts';
import { type OpenFile, openRegularFile } from '../open-regular-file.ts';
import { safeNames } from '../safe-names.ts';
import type { ServiceClient } from '../service/client.ts';
import { gitRepositories } from './git-repositories.ts';
import { fileOfWorkspace } from './handoff-files.ts';
import { looseFiles } from './loose-files.ts';
import { repositoryPatch, scratchIn } from './patch.ts';

export interface SnapshotOptions {
  client: Pick<ServiceClient, 'uploadSnapshot' | 'upload'>;
  workspace: string;
  /**
   * True: also send a patch of each repository in the workspace, or the files of a workspace without repositories, because the workspace
   * belongs only to this run.
   */
  withPatches: boolean;
  env: Readonly<Record<string, string | undefined>>;
  /** Absolute paths of the files that the agent hands off. */
  handedOff: readonly string[];
  turn: number;
  /** True: send a snapshot even if it has no files, so that it replaces an older snapshot. */
  evenEmpty: boolean;
  signal: AbortSignal;
  /** Called for each file or patch that the snapshot leaves out. */
  onLeftOut: (name: string, reason: string) => void;
  limits?: PatchLimits;
}

/**
 * Maximum number of bytes of one patch of a snapshot (`ofOne`), and of all patches (`together`). The limits exist because the patches
 * take space on the sandbox's disk until they are sent.
 */
interface PatchLimits {
  readonly ofOne: number;
  readonly together: number;
}

export const patchLimits: PatchLimits = { ofOne: maxSnapshotFileBytes, together: 4 * maxSnapshotFileBytes };

const patchType = 'text/x-diff';

/** Time limit for making one patch. A patch of a large repository that takes longer is left out. */
const patchTimeoutMs = 60_000;

interface SnapshotFile {
  name: string;
  mimeType: string;
  path: string;
}

/**
 * Sends a patch of each repository, or the files of a workspace without repositories, and the files that are handed off. Returns true if
 * the run has a snapshot now.
 */
export async function sendSnapshot(options: SnapshotOptions): Promise<boolean> {
  const { client, turn, env, signal } = options;
  const repositories = options.withPatches ? await gitRepositories(options.workspace) : [];
  const loose = options.withPatches && repositories.length === 0 ? await looseFiles(options.workspace) : [];
  const isEmpty = repositories.length === 0 && loose.length === 0 && options.handedOff.length === 0;
  if (isEmpty && !options.evenEmpty) return false;
  // Write patches to the home's folder `.cache`, because archives do not include it. Do not write them to /tmp, because /tmp may be in
  // memory.
  const home = env.HOME === undefined ? tmpdir() : join(env.HOME, '.cache');
  const scratch = await scratchIn(home);
  try {
    const patches = await patchesOf(repositories, scratch, options);
    const handedOff = await handedOffFiles(options);
    const others = loose.map((path) => looseFile(options.workspace, path));
    const isNew = ({ path }: SnapshotFile) => handedOff.every((each) => each.path !== path);
    const files = [...patches, ...handedOff, ...others.filter(isNew)].slice(0, maxSnapshotFiles);
    const names = safeNames(files.map(({ name }) => name));
    const opened: (OpenFile & Pick<SnapshotFile, 'mimeType'> & { readonly filename: string })[] = [];
    try {
      // A program that still runs may have removed or replaced a file meanwhile.
      for (const [index, { path, name, mimeType }] of files.entries())
        try {
          opened.push({ ...(await openRegularFile(path, { follows: false })), mimeType, filename: names[index] ?? '' });
        } catch (error) {
          options.onLeftOut(name, (error as Error).message);
        }
      if (opened.length === 0 && !options.evenEmpty) return false;
      const announced = opened.map(({ filename, mimeType, size }) => ({
        filename,
        mime_type: mimeType,
        size_bytes: size,
      }));
      const answer = await client.uploadSnapshot({ turn, files: announced }, { signal });
      for (const [index, { file, size, mimeType }] of opened.entries()) {
        const url = answer.files[index]?.upload_url;
        if (url) await client.upload(pathOf(url), () => openChunks(file, size), size, mimeType, { signal });
      }
    } finally {
      for (const { file } of opened) await file.close();
    }
    return true;
  } finally {
    await rm(scratch, { recursive: true, force: true }).catch(() => {});
  }
}

/** Names of files have no folders, so the name contains those of the path. */
function looseFile(workspace: string, path: string): SnapshotFile {
  const type = mimeTypeOf(path);
  // With the type of a patch, the service would take the file for the changes of a repository.
  const mimeType = type === patchType ? 'text/plain' : type;
  return { name: path.replaceAll('/', '-'), mimeType, path: join(workspace, path) };
}

async function patchesOf(
  repositories: readonly string[],
  scratch: string,
  options: SnapshotOptions,
): Promise<SnapshotFile[]> {
  const patches: SnapshotFile[] = [];
  const { limits = patchLimits } = options;
  let room = limits.together;
  for (const repository of repositories) {
    const name = `${basename(repository)}.patch`;
    const signal = AbortSignal.any([options.signal, AbortSignal.timeout(patchTimeoutMs)]);
    try {
      const gitOptions = { scratch, path: options.env.PATH, maxBytes: Math.min(room, limits.ofOne), signal };
      const path = await repositoryPatch(repository, gitOptions);
      if (path === undefined) continue;
      room -= (await stat(path)).size;
      patches.push({ name, mimeType: patchType, path });
    } catch (error) {
      options.signal.throwIfAborted();
      options.onLeftOut(name, (error as Error).message);
    }
  }
  return patches;
}

async function handedOffFiles({ workspace, handedOff, onLeftOut }: SnapshotOptions): Promise<SnapshotFile[]> {
  const files: SnapshotFile[] = [];
  for (const path of handedOff) {
    const file = await fileOfWorkspace(workspace, path);
    const name = basename(path);
    if (typeof file !== 'string') onLeftOut(name, `it ${file.problem}`);
    else if ((await stat(file)).size > maxSnapshotFileBytes)
      onLeftOut(name, `it has more than ${maxSnapshotFileBytes} bytes`);
    else files.push({ name, mimeType: mimeTypeOf(path), path: file });
  }
  return files;
}
