import { open } from 'node:fs/promises';

/** Makes the names in a folder durable: what was renamed into it is still there after the machine fails (fsync(2)). */
export async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
