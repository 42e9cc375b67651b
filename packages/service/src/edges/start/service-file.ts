import { rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { thisProcess } from '@runyard/system/process-identity';

/** Writes `service.json`, which contains the address of the service. Returns the function that removes it. */
export async function writeServiceFile(dataDir: string, baseUrl: string): Promise<() => Promise<void>> {
  const file = path.join(dataDir, 'service.json');
  await writeFile(
    `${file}.${process.pid}`,
    JSON.stringify({
      ...thisProcess(),
      base_url: baseUrl,
      started_at: new Date().toISOString(),
    }),
  );
  await rename(`${file}.${process.pid}`, file);
  return () => rm(file, { force: true });
}
