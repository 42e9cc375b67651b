/** Downloads a large file so that an interrupted download can continue. */
import { createHash, type Hash, randomUUID } from 'node:crypto';
import { constants } from 'node:fs';
import { type FileHandle, link, lstat, open, rename, rm } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { formatBytes } from '@runyard/contract/wire/byte-size';
import { backoffMs } from '@runyard/system/backoff';
import { Failure } from '../exits/failure.ts';
import { type ProgressScreen, showProgress } from '../terminal/progress.ts';
import { BrokenDownload, type download } from './download.ts';

/** A file of the service. Its bytes never change. */
export interface RemoteFile {
  /** Size and SHA-256 in hexadecimal. Absent: the service does not know them, and an interrupted download begins again. */
  readonly known?: { readonly sizeBytes: number; readonly sha256: string } | undefined;
  /** Opens the bytes from this position on. */
  open(from: number): ReturnType<typeof download>;
}

export interface DownloadPlace {
  readonly file: string;
  /** True: an existing file is replaced. */
  readonly replaces: boolean;
  readonly screen: ProgressScreen;
  readonly report: (message: string) => void;
  /** Wait before the first new try. Default: 500 ms. */
  readonly firstRetryMs?: number;
}

/** The download ends after this number of failed tries in a row in which no byte arrived. */
const maxFailures = 5;

/**
 * Writes the bytes into a file beside `file`, and gives it the name `file` when all bytes have arrived and have the right SHA-256. The name
 * of the file beside contains the SHA-256. If it exists, an earlier command has left it, and the download continues after its last byte.
 * @throws Failure if the download or a write fails. The bytes that have arrived stay for the next command.
 */
export async function downloadFile(remote: RemoteFile, place: DownloadPlace): Promise<void> {
  const { file, replaces } = place;
  const there = await lstat(file).catch(() => undefined);
  if (there && !replaces) throw existsAlready(file);
  const part = `${file}.${remote.known?.sha256.slice(0, 16) ?? randomUUID()}.part`;
  const flags = constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW | constants.O_NONBLOCK;
  const handle = await writing(part, () => open(part, flags, 0o666));
  try {
    await fill(handle, part, remote, place);
  } catch (error) {
    if (remote.known === undefined) await rm(part, { force: true });
    throw error;
  } finally {
    await handle.close();
  }
  await writing(file, () => (replaces ? rename(part, file) : nameNew(part, file)));
}

const existsAlready = (file: string) => new Failure(`${file} exists already; choose another file with --output FILE`);

/** Writes all bytes into the open file, and checks them. */
async function fill(
  handle: FileHandle,
  part: string,
  { known, open }: RemoteFile,
  place: DownloadPlace,
): Promise<void> {
  if (!(await handle.stat()).isFile()) throw new Failure(`${part} is not a regular file; remove it`);
  let { hash, bytes } = await hashOf(handle);
  if (bytes > 0 && known) place.report(`the download continues after ${formatBytes(bytes)}`);
  const progress = showProgress(place.screen, known?.sizeBytes, bytes);

  /** Appends the bytes that arrive. */
  async function append(): Promise<void> {
    const answer = await open(bytes);
    if (answer.from !== bytes) {
      await writing(part, () => handle.truncate(0));
      [hash, bytes] = [createHash('sha256'), 0];
    }
    try {
      for await (const piece of answer.bytes as AsyncIterable<Buffer>) {
        await writing(part, () => writeAll(handle, piece, bytes));
        hash.update(piece);
        bytes += piece.length;
        progress.set(bytes);
      }
    } catch (error) {
      throw error instanceof Failure ? error : new BrokenDownload((error as Error).message);
    }
  }

  try {
    for (let failures = 0; known === undefined || bytes < known.sizeBytes; ) {
      const before = bytes;
      try {
        await append();
        break;
      } catch (error) {
        if (!(error instanceof BrokenDownload) || known === undefined) throw error;
        failures = bytes > before ? 1 : failures + 1;
        if (failures > maxFailures)
          throw new Failure(
            `${error.message}. ${part} has the first ${formatBytes(bytes)} of the file; the same command continues there`,
          );
        await delay(backoffMs({ firstMs: place.firstRetryMs ?? 500, longestMs: 10_000 }, failures));
      }
    }
  } finally {
    progress.end();
  }
  if (known === undefined || (bytes === known.sizeBytes && hash.digest('hex') === known.sha256)) return;
  await rm(part, { force: true });
  throw new Failure('the bytes that arrived do not have the SHA-256 of the file and were removed; try again');
}

/** Hashes the bytes that an earlier command has left in the file. */
async function hashOf(handle: FileHandle): Promise<{ hash: Hash; bytes: number }> {
  const hash = createHash('sha256');
  let bytes = 0;
  for await (const piece of handle.createReadStream({ autoClose: false, start: 0 }) as AsyncIterable<Buffer>) {
    hash.update(piece);
    bytes += piece.length;
  }
  return { hash, bytes };
}

async function writeAll(handle: FileHandle, bytes: Buffer, position: number): Promise<void> {
  for (let written = 0; written < bytes.length; )
    written += (await handle.write(bytes, written, bytes.length - written, position + written)).bytesWritten;
}

/** Gives a file a name that no file has. Some file systems have no hard links: there, the check at the start must be enough. */
async function nameNew(part: string, file: string): Promise<void> {
  try {
    await link(part, file);
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    if (code === 'EEXIST') throw existsAlready(file);
    if (!['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK'].includes(code)) throw error;
    return await rename(part, file);
  }
  await rm(part);
}

/** Does a step that writes a file. @throws Failure that names the file */
async function writing<T>(file: string, step: () => Promise<T>): Promise<T> {
  try {
    return await step();
  } catch (error) {
    if (error instanceof Failure) throw error;
    throw new Failure(`cannot write ${file}: ${error instanceof Error ? error.message : String(error)}`);
  }
}
