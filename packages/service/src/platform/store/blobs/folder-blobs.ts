/**
 * Stores blobs as files, for example `{folder}/objects/ab/artifacts+0190…` for the key `artifacts/0190…`. `ab` is the beginning of the
 * SHA-256 of the key. So the files are spread over 256 subfolders, and no subfolder has too many files. Any number of processes may
 * share the folder.
 */
import { createHash, randomBytes } from 'node:crypto';
import { constants } from 'node:fs';
import { type FileHandle, link, lstat, mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { Readable } from 'node:stream';
import { stateOf, thisProcess } from '@runyard/system/process-identity';
import { asUnavailable } from '../database/unavailable.ts';
import { type BlobStore, type ByteRange, checkBlobKey, isBlobKey, type ListedBlob, type PutOutcome } from './blobs.ts';
import { syncFolder } from './sync-folder.ts';

/**
 * An unfinished upload of a process in another process namespace is deleted if nothing was written to it for this time. The service
 * cannot see whether a process in another namespace still lives.
 */
const abandonedAfterMs = 24 * 3600 * 1000;

/** Creates the folder if it does not exist. This and each `list` remove unfinished uploads of dead processes. */
export async function openFolderBlobs(folder: string): Promise<BlobStore> {
  const objects = path.resolve(folder, 'objects');
  const incoming = path.resolve(folder, 'incoming');
  await mkdir(objects, { recursive: true, mode: 0o700 });
  await mkdir(incoming, { recursive: true, mode: 0o700 });
  await sweepIncoming(incoming);
  const fileOf = (key: string): string => {
    checkBlobKey(key);
    const fan = createHash('sha256').update(key).digest('hex').slice(0, 2);
    return path.join(objects, fan, key.replaceAll('/', '+'));
  };
  return {
    put: async (key, body, { maxBytes }) => await put(incoming, fileOf(key), body, { maxBytes, move: rename }),
    putIfAbsent: async (key, body) => {
      try {
        await put(incoming, fileOf(key), body, { maxBytes: Number.MAX_SAFE_INTEGER, move: link });
        return true;
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
        throw error;
      }
    },
    get: async (key, range) => await get(fileOf(key), range),
    stat: async (key) => {
      const found = await absentAsUndefined(stat(fileOf(key)));
      return found && { sizeBytes: found.size };
    },
    delete: async (key) => {
      const file = fileOf(key);
      if ((await absentAsUndefined(lstat(file))) === undefined) return;
      await rm(file, { force: true });
      await syncFolder(path.dirname(file));
    },
    list: () => list({ objects, incoming }),
  };
}

/** Gives a complete file its final name. If a file of that name exists, `rename` replaces it, and `link` fails with EEXIST. */
type Move = (temporary: string, file: string) => Promise<void>;

async function put(
  incoming: string,
  file: string,
  body: AsyncIterable<Uint8Array>,
  { maxBytes, move }: { readonly maxBytes: number; readonly move: Move },
): Promise<PutOutcome> {
  const temporary = path.join(incoming, temporaryName());
  const handle = await onDisk(open(temporary, 'wx', 0o600));
  try {
    const hash = createHash('sha256');
    let sizeBytes = 0;
    for await (const chunk of body) {
      sizeBytes += chunk.byteLength;
      if (sizeBytes > maxBytes) return { outcome: 'too_large' };
      hash.update(chunk);
      await onDisk(writeAll(handle, chunk));
    }
    await onDisk(handle.sync());
    await onDisk(moveInto(temporary, file, move));
    return { outcome: 'stored', sizeBytes, sha256: hash.digest() };
  } finally {
    await handle.close();
    await rm(temporary, { force: true });
  }
}

/** Throws `StoreUnavailable` if the disk is full. */
async function onDisk<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    throw asUnavailable(error, 'disk');
  }
}

async function writeAll(handle: FileHandle, chunk: Uint8Array): Promise<void> {
  for (let offset = 0; offset < chunk.byteLength; ) {
    offset += (await handle.write(chunk, offset)).bytesWritten;
  }
}

/**
 * Gives the file its final name and makes the name durable: the name of a file is durable after its folder was synced, and the name of
 * a new folder after the parent folder was synced.
 */
async function moveInto(temporary: string, file: string, move: Move): Promise<void> {
  const folder = path.dirname(file);
  if ((await mkdir(folder, { recursive: true, mode: 0o700 })) !== undefined) await syncFolder(path.dirname(folder));
  await move(temporary, file);
  await syncFolder(folder);
}

async function get(file: string, range: ByteRange | undefined) {
  const handle = await absentAsUndefined(open(file, constants.O_RDONLY | constants.O_NOFOLLOW));
  if (handle === undefined) return undefined;
  try {
    const sizeBytes = (await handle.stat()).size;
    if (range !== undefined && (range.start >= sizeBytes || range.end < range.start)) {
      await handle.close();
      return { sizeBytes, stream: Readable.from([]) };
    }
    return { sizeBytes, stream: handle.createReadStream({ ...range }) };
  } catch (error) {
    await handle.close();
    throw error;
  }
}

/** Skips files that are not blobs. For example, NFS renames a deleted file to `.nfs…` while a process still reads it. */
async function* list({
  objects,
  incoming,
}: {
  readonly objects: string;
  readonly incoming: string;
}): AsyncIterable<ListedBlob> {
  await sweepIncoming(incoming);
  for (const fan of await readdir(objects, { withFileTypes: true })) {
    if (!fan.isDirectory()) continue;
    for (const name of await readdir(path.join(objects, fan.name))) {
      const key = name.replaceAll('+', '/');
      if (!isBlobKey(key)) continue;
      const found = await absentAsUndefined(stat(path.join(objects, fan.name, name)));
      if (found?.isFile()) yield { key, sizeBytes: found.size, storedAt: found.mtime };
    }
  }
}

/** Returns a file name that identifies this process: `{pid}.{start}.{pid namespace}.{random}`. */
function temporaryName(): string {
  const { pid, start_ticks, pid_namespace } = thisProcess();
  return `${pid}.${start_ticks}.${pid_namespace}.${randomBytes(8).toString('hex')}`;
}

async function sweepIncoming(incoming: string): Promise<void> {
  for (const name of await readdir(incoming)) {
    const [pid = '', ticks = '', namespace = ''] = name.split('.');
    const state = stateOf({ pid: Number(pid), start_ticks: Number(ticks), pid_namespace: namespace });
    const file = path.join(incoming, name);
    const written = (await absentAsUndefined(stat(file)))?.mtimeMs ?? 0;
    if (state === 'gone' || (state === 'elsewhere' && written < Date.now() - abandonedAfterMs))
      await rm(file, { force: true });
  }
}

async function absentAsUndefined<T>(found: Promise<T>): Promise<T | undefined> {
  try {
    return await found;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}
