import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { PassThrough, Readable, Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { constants, createZstdCompress } from 'node:zlib';
import { lastPart } from '@runyard/contract/wire/shorten';
import { UnreadableBody } from '../service/errors.ts';
import type { ArchivedFolder } from './archived-folders.ts';
import { framed } from './frames.ts';

/** The archive would be larger than the limit. */
export class ArchiveTooLarge extends UnreadableBody {
  override name = 'ArchiveTooLarge';
}

export interface PackOptions {
  env: Readonly<Record<string, string | undefined>>;
  maxBytes: number;
  signal: AbortSignal;
}

/** Add checksums to the compressed data, so that the reader detects a damaged archive. */
const compression = {
  params: { [constants.ZSTD_c_compressionLevel]: 3, [constants.ZSTD_c_checksumFlag]: 1 },
};

/**
 * Returns the folders as one compressed archive. The stream fails if the archive cannot be created, if the archive becomes too large, or if
 * the signal aborts.
 */
export function packFolders(folders: readonly ArchivedFolder[], options: PackOptions): Readable {
  const archive = new PassThrough();
  let bytes = 0;
  const limit = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      bytes += chunk.length;
      if (bytes > options.maxBytes)
        done(new ArchiveTooLarge(`Workspace and home have more than ${options.maxBytes} bytes compressed.`));
      else done(null, chunk);
    },
  });
  const frames = Readable.from(framed(folders.map((folder) => tarOf(folder, options))), { objectMode: false });
  pipeline(frames, createZstdCompress(compression), limit, archive, { signal: options.signal }).catch(
    (error: Error) => {
      archive.destroy(error instanceof UnreadableBody ? error : new UnreadableBody(error.message));
    },
  );
  return archive;
}

/**
 * Returns a folder as a tar stream. Links stay links and sockets are left out. If a file changes while it is being read, the archive
 * has the bytes that were read.
 */
async function* tarOf(
  { path: folder, excluded }: ArchivedFolder,
  { env, signal }: PackOptions,
): AsyncGenerator<Buffer> {
  const child = spawn(
    'tar',
    [
      '--create',
      '--file=-',
      // This format stores times to the nanosecond, because build tools compare times.
      '--format=pax',
      '--pax-option=delete=atime,delete=ctime',
      '--ignore-failed-read',
      '--warning=none',
      '--one-file-system',
      // A disk image can have terabytes of holes. Without this option, tar stores and restores the holes as zeros.
      '--sparse',
      '--anchored',
      ...excluded.map((path) => `--exclude=${path}`),
      `--directory=${folder}`,
      '.',
    ],
    { env: { PATH: env.PATH, LANG: 'C.UTF-8' }, stdio: ['ignore', 'pipe', 'pipe'] },
  );
  const closed = once(child, 'close') as Promise<[number | null]>;
  closed.catch(() => {});
  let errorOutput = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    errorOutput = lastPart(errorOutput + text, 500);
  });
  const stop = () => child.kill('SIGKILL');
  signal.addEventListener('abort', stop, { once: true });
  try {
    for await (const chunk of child.stdout) yield chunk as Buffer;
    const [code] = await closed;
    // Accept the exit code 1: it means that a file changed while tar read it.
    if (code !== 0 && code !== 1) throw new UnreadableBody(`tar ended with ${code}: ${errorOutput.trim()}`);
  } finally {
    signal.removeEventListener('abort', stop);
    stop();
  }
}
