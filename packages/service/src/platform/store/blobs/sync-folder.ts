import { open } from 'node:fs/promises';

/** Makes the names in a folder durable: a file that was renamed into it still exists after a failure of the machine (fsync(2)). */
export async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
