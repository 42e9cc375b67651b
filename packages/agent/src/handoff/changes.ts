import { lstat, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import {
  maxChangedFiles,
  maxChangedRepositories,
  maxFilePatchBytes,
  maxPatchesOfRunBytes,
} from '@runyard/contract/limits';
import type { ChangedFile, ReportChanges, RepositoryChanges } from '@runyard/contract/runs/changes';
import { type ListedFile, parseFileList, patchReader } from './diff-parts.ts';
import { branchOf, gitRepositories } from './git-repositories.ts';
import { openPatchGit, scratchIn } from './patch.ts';

export interface ChangesOptions {
  readonly workspace: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly signal: AbortSignal;
}

/** Time limit for reading one repository. */
const timeoutMs = 60_000;
/** Maximum number of bytes of patches that are read from one repository. */
const maxReadBytes = 64 * 1024 * 1024;
/** Maximum size of a file whose lines git compares. */
const maxFileBytes = 1024 * 1024;
const largeFiles: readonly [string, string] = ['core.bigFileThreshold', String(maxFileBytes)];
const shape = ['--no-color', '--no-ext-diff', '--no-textconv', '--ignore-submodules=all', '--find-renames', '-l200'];

/** The number of files and the bytes of patches that still fit into the report, for all repositories together. */
interface Room {
  files: number;
  bytes: number;
}

/** Reads the changes that the run made in the repositories of its workspace, up to the limits of a report. */
export async function readChanges(options: ChangesOptions): Promise<ReportChanges> {
  const { workspace, env, signal } = options;
  const scratch = await scratchIn(env.HOME === undefined ? tmpdir() : join(env.HOME, '.cache'));
  const room: Room = { files: maxChangedFiles, bytes: maxPatchesOfRunBytes };
  const repositories: RepositoryChanges[] = [];
  try {
    for (const repository of (await gitRepositories(workspace)).slice(0, maxChangedRepositories)) {
      const ofThis = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
      const path = relative(workspace, repository);
      const branch = await branchOf(repository);
      const place = { path, ...(branch === undefined ? {} : { branch }) };
      try {
        repositories.push({ ...place, ...(await changesOf(repository, { scratch, env, signal: ofThis }, room)) });
      } catch (error) {
        signal.throwIfAborted();
        repositories.push({ ...place, files: [], problem: (error as Error).message.slice(0, 2000) });
      }
    }
  } finally {
    await rm(scratch, { recursive: true, force: true }).catch(() => {});
  }
  return { repositories };
}

async function changesOf(
  repository: string,
  { scratch, env, signal }: { scratch: string; env: ChangesOptions['env']; signal: AbortSignal },
  room: Room,
): Promise<Omit<RepositoryChanges, 'path' | 'branch'>> {
  const gitOptions = { scratch, path: env.PATH, maxBytes: Number.POSITIVE_INFINITY, signal };
  const { run, base, commit } = await openPatchGit(repository, gitOptions, [largeFiles]);
  const list = ['diff-index', '--raw', '--numstat', '-z', ...shape, `${base}^{tree}`, '--'];
  const listedFiles = parseFileList(await run(list, { encoding: 'latin1' }));
  const reader = patchReader({ ofFile: maxFilePatchBytes, together: room.bytes, read: maxReadBytes });
  await run(['diff-index', '--patch', ...shape, '--src-prefix=a/', '--dst-prefix=b/', `${base}^{tree}`, '--'], {
    encoding: 'latin1',
    each: reader.read,
  });
  const { patches, tooLarge } = reader.end();
  const files: ChangedFile[] = [];
  for (const file of listedFiles.slice(0, room.files)) {
    const isLarge =
      tooLarge.has(file.path) || (file.lines === undefined && (await hasManyBytes(repository, file.path)));
    files.push(reported(file, patches.get(file.path), isLarge));
  }
  room.files -= files.length;
  room.bytes -= files.reduce((sum, { patch = '' }) => sum + Buffer.byteLength(patch), 0);
  const leftOut = listedFiles.length - files.length;
  return {
    ...(commit === undefined ? {} : { base_commit: commit }),
    files,
    ...(leftOut > 0 ? { files_left_out: leftOut } : {}),
  };
}

async function hasManyBytes(repository: string, path: string): Promise<boolean> {
  const stat = await lstat(Buffer.concat([Buffer.from(`${repository}/`), Buffer.from(path, 'latin1')])).catch(
    () => undefined,
  );
  return stat !== undefined && stat.size > maxFileBytes;
}

const textOf = (latin1: string): string => Buffer.from(latin1, 'latin1').toString();

function reported(file: ListedFile, hunks: string | undefined, isTooLarge: boolean): ChangedFile {
  const { path, oldPath, status, lines } = file;
  const hasLines = lines !== undefined && lines.additions + lines.deletions > 0;
  const patch = hunks === undefined ? undefined : textOf(hunks);
  // Measure the size after decoding, because decoding replaces a byte that is not UTF-8 by three bytes.
  const fits = patch !== undefined && Buffer.byteLength(patch) <= maxFilePatchBytes;
  return {
    path: textOf(path).slice(0, 4096),
    ...(oldPath === undefined ? {} : { old_path: textOf(oldPath).slice(0, 4096) }),
    status,
    ...(lines ?? (isTooLarge ? {} : { binary: true as const })),
    ...(isTooLarge || (hasLines && !fits) ? { too_large: true as const } : {}),
    ...(fits && !isTooLarge ? { patch } : {}),
  };
}
