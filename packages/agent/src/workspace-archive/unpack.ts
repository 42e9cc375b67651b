import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { Readable, Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createZstdDecompress } from 'node:zlib';
import { lastPart } from '@runyard/contract/wire/shorten';
import type { ArchivedFolder } from './archived-folders.ts';
import { unframed } from './frames.ts';

export interface UnpackOptions {
  /** SHA-256 of the whole archive, in hexadecimal digits. */
  sha256: string;
  env: Readonly<Record<string, string | undefined>>;
  signal: AbortSignal;
}

/**
 * Unpacks an archive of `packFolders` into the same number of folders. Throws if the archive is damaged; some files may already be
 * written then. Runs inside the sandbox, because the contents of the archive come from untrusted code of an earlier sandbox.
 */
export async function unpackFolders(
  archive: Readable,
  folders: readonly ArchivedFolder[],
  options: UnpackOptions,
): Promise<void> {
  const hash = createHash('sha256');
  const hashing = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      hash.update(chunk);
      done(null, chunk);
    },
  });
  await pipeline(
    archive,
    hashing,
    createZstdDecompress(),
    async (source: AsyncIterable<Buffer>) => {
      const streams = unframed(source);
      for (const folder of folders) await untar(streams.next(), folder.path, options);
      await streams.end();
    },
    { signal: options.signal },
  );
  if (hash.digest('hex') !== options.sha256) throw new Error('the archive differs from the archive that was stored');
}

/**
 * Lock files of git. The processes that created these locks have ended, and git refuses to work while lock files exist. Leaving out
 * these files loses no branch, because the name of a ref cannot end with `.lock` (git-check-ref-format).
 */
const locks = ['index', 'HEAD', 'config', 'packed-refs', 'shallow', 'refs/*', 'logs/*', 'worktrees/*', 'modules/*'].map(
  (name) => `--exclude=.git/${name}.lock`,
);

/**
 * Unpacks a tar stream into a folder. An archive cannot write outside of the folder, because tar itself refuses names with `..`, cuts a
 * leading `/`, and creates links last.
 */
async function untar(tar: AsyncIterable<Buffer>, folder: string, { env }: UnpackOptions): Promise<void> {
  const child = spawn(
    'tar',
    [
      '--extract',
      '--file=-',
      '--no-same-owner',
      '--preserve-permissions',
      '--warning=none',
      '--wildcards',
      ...locks,
      `--directory=${folder}`,
    ],
    { env: { PATH: env.PATH, LANG: 'C.UTF-8' }, stdio: ['pipe', 'ignore', 'pipe'] },
  );
  const closed = once(child, 'close') as Promise<[number | null]>;
  closed.catch(() => {});
  let errorOutput = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    errorOutput = lastPart(errorOutput + text, 500);
  });
  try {
    await pipeline(Readable.from(tar, { objectMode: false }), child.stdin).catch((error: NodeJS.ErrnoException) => {
      // Ignore a broken pipe. It means that tar has ended early, and the message of tar is more precise.
      if (error.code !== 'EPIPE') throw error;
    });
    const [code] = await closed;
    if (code !== 0) throw new Error(`tar ended with ${code}: ${errorOutput.trim()}`);
  } finally {
    child.kill('SIGKILL');
    // Wait until tar has ended, because the caller may empty the folder afterwards, and tar must not write into it any more.
    await closed.catch(() => undefined);
  }
}
