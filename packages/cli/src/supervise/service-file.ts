import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { isAlive } from './processes.ts';

const ServiceFile = z.object({
  pid: z.int().positive(),
  start_ticks: z.number(),
  pid_namespace: z.string(),
  base_url: z.string(),
  started_at: z.string(),
});
/** What the service tells of itself while it listens. */
export type ServiceFile = z.infer<typeof ServiceFile>;

/** The service of this data folder, `null` where none runs here: a file that a crash left names a process that is gone. */
export function readServiceFile(file: string): ServiceFile | null {
  let parsed: ReturnType<typeof ServiceFile.safeParse>;
  try {
    parsed = ServiceFile.safeParse(JSON.parse(readFileSync(file, 'utf8')));
  } catch {
    return null;
  }
  return parsed.success && isAlive(parsed.data) ? parsed.data : null;
}
