/** Reads and writes small files with secrets, which are generated once and stored in the data folder with mode 0600. */
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
 * Creates the file with the whole text, or not at all. If another process has created the file first, returns the text of that
 * process. Returns only after the text is on the disk. Otherwise a caller could encrypt with this key, store the result, and lose the
 * key in a crash.
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
 * Replaces the file by a file with the new text, completely or not at all. Returns only after the text is on the disk.
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
