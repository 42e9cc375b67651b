import { readFile } from 'node:fs/promises';
import path from 'node:path';
import type { Settings } from '@runyard/contract/settings';

/** The worker's key: the setting, else what the service of the same data folder generated. Read anew for each connection, because the service may make it later. */
export async function readApiKey(settings: Settings): Promise<string | undefined> {
  if (settings.RUNYARD_API_KEY !== undefined) return settings.RUNYARD_API_KEY;
  const file = path.join(settings.RUNYARD_DATA_DIR, 'bootstrap-key');
  const text = await readFile(file, 'utf8').catch(() => '');
  return text.trim() || undefined;
}

/** True where the text can be sent as a bearer token: visible ASCII characters only. */
export const isKeyText = (key: string): boolean => /^[\x21-\x7e]+$/.test(key);

/** Where the key comes from, for messages; never the key. */
export function keySource(settings: Settings): string {
  return settings.RUNYARD_API_KEY === undefined
    ? path.join(settings.RUNYARD_DATA_DIR, 'bootstrap-key')
    : 'RUNYARD_API_KEY';
}
