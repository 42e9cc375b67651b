import { readFile } from 'node:fs/promises';
import path from 'node:path';
import type { Settings } from '@runyard/contract/settings/settings';

/**
 * Returns the worker's key: the value of the setting or, if it is not set, the key that the service of the same data folder has
 * generated. Is called for each connection, because the service may generate its key later.
 */
export async function readApiKey(settings: Settings): Promise<string | undefined> {
  if (settings.RUNYARD_API_KEY !== undefined) return settings.RUNYARD_API_KEY;
  const file = path.join(settings.RUNYARD_DATA_DIR, 'bootstrap-key');
  const text = await readFile(file, 'utf8').catch(() => '');
  return text.trim() || undefined;
}

/** Returns true if the text can be sent as a bearer token: visible ASCII characters only. */
export const isKeyText = (key: string): boolean => /^[\x21-\x7e]+$/.test(key);

/** Returns the name of the setting or file with the key, for messages. Never returns the key itself. */
export function keySource(settings: Settings): string {
  return settings.RUNYARD_API_KEY === undefined
    ? path.join(settings.RUNYARD_DATA_DIR, 'bootstrap-key')
    : 'RUNYARD_API_KEY';
}
