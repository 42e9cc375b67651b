/** Small secrets that are generated once and stored in the data folder, mode 0600. */
import { randomUUID } from 'node:crypto';
import { link, mkdir, open, readFile, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { syncFolder } from './blobs/sync-folder.ts';

/** Returns the text of the file without white space at the ends; undefined if the file does not exist or is empty. */
export async function readSecretFile(file: string): Promise<string | undefined> {
  try {
    return (await readFile(file, 'utf8')).trim() || undefined;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

/**
 * Writes the file whole or not at all. If another process was faster, returns the text of that process. The text is on the disk when this
 * returns, because callers may encrypt with it and write the result to another disk.
 */
export async function createSecretFile(file: string, text: string): Promise<string> {
  await mkdir(path.dirname(file), { recursive: true });
  const draft = await writeDraft(file, text);
  try {
    await link(draft, file);
    await syncFolder(path.dirname(file));
    return text;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    return (await readSecretFile(file)) ?? text;
  } finally {
    await rm(draft, { force: true });
  }
}

/**
 * Replaces the file by a file with this text, whole or not at all. The new text is on the disk when this returns.
 */
export async function replaceSecretFile(file: string, text: string): Promise<void> {
  const draft = await writeDraft(file, text);
  await rename(draft, file);
  await syncFolder(path.dirname(file));
}

async function writeDraft(file: string, text: string): Promise<string> {
  const draft = `${file}.${randomUUID()}`;
  const handle = await open(draft, 'wx', 0o600);
  try {
    await handle.writeFile(`${text}\n`);
    await handle.sync();
  } finally {
    await handle.close();
  }
  return draft;
}
