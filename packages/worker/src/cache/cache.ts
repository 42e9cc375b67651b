import { createHash, randomBytes } from 'node:crypto';
import { type FileHandle, mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import type { Readable } from 'node:stream';
import { type Budget, longestMs } from './budget.ts';

/** One object of the cache, open for reading. The caller must read `content` to its end or call `close`. */
export interface CachedObject {
  /** SHA-256 of the content in hexadecimal digits, calculated when the content was written. */
  readonly sha256: string;
  readonly bytes: number;
  /** Returns the content as a stream. The object is closed when the stream ends. */
  content(): Readable;
  close(): Promise<void>;
}

/**
 * `kept`: the whole object is on the disk. `too_large`: the object exceeds the limit of one object, or the cache has no further object
 * to remove to make space.
 */
export type WriteOutcome = 'kept' | 'too_large';

/** Objects that agents keep on this machine for later runs. The worker never looks into them. */
export interface Cache {
  read(name: string): Promise<CachedObject | undefined>;
  /** Stores the bytes under this name and replaces the earlier object of the name. If the source fails, rejects and changes nothing. */
  write(name: string, source: AsyncIterable<Uint8Array>): Promise<WriteOutcome>;
}

export interface CacheOptions {
  /** Folder of the cache in the data folder. The caller holds the lock of the data folder, because only one process may open the cache. */
  readonly folder: string;
  /** The space of all objects together, including objects that are being written. */
  readonly budget: Budget;
  /** Returns the current Unix time in milliseconds. */
  readonly now?: () => number;
}

/** Length of a SHA-256 in bytes. Each file begins with the SHA-256 of the content, and the content follows. */
const headerBytes = 32;
/** One object may use at most a quarter of the cache, so that it cannot displace all other objects. */
const largestPart = 4;
const temporaryPrefix = 'new-';

/**
 * Returns the file name of an object. The file name is a hash of the object's name, because a process that knows the name can read the
 * object.
 */
const fileOf = (name: string): string => createHash('sha256').update(name).digest('hex');

/**
 * Opens the cache and removes the unfinished objects of an earlier process. An object is written into a separate file, which is renamed
 * when it is complete and on the disk. So if the worker is killed while it writes an object, the cache still has the earlier object of
 * this name, if there was one.
 */
export async function openCache({ folder, budget, now = Date.now }: CacheOptions): Promise<Cache> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const entryOf = (file: string, bytes: number, usedAt: number) => ({
    bytes,
    usedAt,
    remove: () => rm(path.join(folder, file), { force: true }),
  });

  for (const file of await readdir(folder)) {
    const found = await stat(path.join(folder, file)).catch(() => undefined);
    if (!/^[0-9a-f]{64}$/.test(file) || !found?.isFile() || found.size < headerBytes)
      await rm(path.join(folder, file), { recursive: true, force: true });
    else budget.add(file, entryOf(file, found.size, found.atimeMs));
  }
  await budget.reserve(0);

  /**
   * Writes the source into the file and returns the size of the file, or `too_large`. After each reservation, calls `took` with the
   * number of bytes that were reserved.
   */
  const copy = async (file: FileHandle, source: AsyncIterable<Uint8Array>, took: (bytes: number) => void) => {
    const hash = createHash('sha256');
    let written = 0;
    const add = async (chunk: Uint8Array): Promise<boolean> => {
      const { byteLength: bytes } = chunk;
      if (written + bytes > budget.maxBytes / largestPart || !(await budget.reserve(bytes))) return false;
      took(bytes);
      await writeAll(file, chunk, written);
      written += bytes;
      return true;
    };
    if (!(await add(new Uint8Array(headerBytes)))) return 'too_large' as const;
    for await (const chunk of source) {
      if (!(await add(chunk))) return 'too_large' as const;
      hash.update(chunk);
    }
    await file.write(hash.digest(), 0, headerBytes, 0);
    const time = new Date(now());
    await file.utimes(time, time);
    await file.sync();
    return written;
  };

  return {
    async read(name) {
      const id = fileOf(name);
      const entry = budget.get(id);
      if (entry === undefined) return undefined;
      const file = await open(path.join(folder, id)).catch(() => undefined);
      if (file === undefined) {
        await budget.forget(id);
        return undefined;
      }
      const found = await headerOf(file).catch(async (error) => {
        await file.close();
        throw error;
      });
      if (found.sha256 === undefined || found.size !== entry.bytes || now() - found.mtime.getTime() > longestMs) {
        await file.close();
        await budget.forget(id);
        return undefined;
      }
      entry.usedAt = now();
      // Stores the time of the last use as the file's access time, for the next process. The modification time stays the time of the
      // write, because seven days after it the object expires.
      await file.utimes(new Date(entry.usedAt), found.mtime).catch(() => {});
      return {
        sha256: found.sha256,
        bytes: found.size - headerBytes,
        content: () => file.createReadStream({ start: headerBytes }),
        close: () => file.close(),
      };
    },

    async write(name, source) {
      const id = fileOf(name);
      const temporary = path.join(folder, `${temporaryPrefix}${randomBytes(8).toString('hex')}`);
      let reserved = 0;
      const file = await open(temporary, 'wx', 0o600);
      try {
        const size = await copy(file, source, (bytes) => {
          reserved += bytes;
        }).finally(() => file.close());
        if (size === 'too_large') return size;
        // The rename replaces an earlier object of this name in one step, so readers never see a part of an object.
        await rename(temporary, path.join(folder, id));
        budget.add(id, entryOf(id, size, now()));
        return 'kept';
      } finally {
        budget.release(reserved);
        await rm(temporary, { force: true });
      }
    },
  };
}

/** Reads the hash that is stored before the content, and the size and time of the file. `sha256` is undefined if the file is too short. */
async function headerOf(file: FileHandle): Promise<{ sha256: string | undefined; size: number; mtime: Date }> {
  const header = Buffer.alloc(headerBytes);
  const { bytesRead } = await file.read(header, 0, headerBytes, 0);
  const { size, mtime } = await file.stat();
  return { sha256: bytesRead < headerBytes ? undefined : header.toString('hex'), size, mtime };
}

async function writeAll(file: FileHandle, chunk: Uint8Array, position: number): Promise<void> {
  for (let done = 0; done < chunk.byteLength; ) {
    const { bytesWritten } = await file.write(chunk, done, chunk.byteLength - done, position + done);
    done += bytesWritten;
  }
}
