/**
 * Stores installed npm and pip packages in the user's cache folder for later test runs, because each installation takes seconds of
 * processor time.
 */
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, rename, rm, stat, utimes } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import path from 'node:path';

export interface KeptPackages {
  /** The folder must only be read, because other test runs use it. */
  readonly folder: string;
  /** Removes the packages if they are in a temporary folder, because they could not be stored for later test runs. */
  remove(): Promise<void>;
}

const unusedLimitMs = 30 * 86_400_000;

/**
 * Returns a folder that `install` has filled in this test run or in an earlier one. `inputs` must contain everything on which the
 * content of the folder depends. If the user's cache folder cannot be written, the returned folder is a temporary folder.
 */
export async function keepPackages(
  inputs: readonly string[],
  install: (folder: string) => Promise<void>,
): Promise<KeptPackages> {
  const caches = path.join(process.env.XDG_CACHE_HOME || path.join(homedir(), '.cache'), 'runyard-tests');
  const place = path.join(caches, createHash('sha256').update(JSON.stringify(inputs)).digest('hex'));
  const keep = async () => {
    await utimes(place, new Date(), new Date());
    return { folder: place, remove: async () => {} };
  };
  if (existsSync(place)) return await keep();
  const isWritable = await mkdir(caches, { recursive: true }).then(
    () => true,
    () => false,
  );
  const making = await mkdtemp(path.join(isWritable ? caches : tmpdir(), 'making-'));
  const remove = () => rm(making, { recursive: true, force: true });
  try {
    await install(making);
  } catch (error) {
    await remove();
    throw error;
  }
  if (!isWritable) return { folder: making, remove };
  await removeUnused(caches);
  // The rename fails if another test run has stored the folder meanwhile. Then use that folder.
  await rename(making, place).catch(remove);
  return await keep();
}

async function removeUnused(caches: string): Promise<void> {
  for (const name of await readdir(caches)) {
    const folder = path.join(caches, name);
    // Ignore an error, because another test run may remove the folder at the same time.
    const found = await stat(folder).catch(() => undefined);
    if (found && Date.now() - found.mtimeMs > unusedLimitMs) await rm(folder, { recursive: true, force: true });
  }
}
