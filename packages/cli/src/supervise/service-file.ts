import { readHolder } from '@runyard/contract/claim';
import { stateOf } from '@runyard/contract/process-identity';
import { z } from 'zod';

const ServiceFile = z.object({
  pid: z.int().positive(),
  start_ticks: z.number(),
  pid_namespace: z.string(),
  base_url: z.string(),
  started_at: z.string(),
});
/** The file that the service writes about itself while it listens. */
export type ServiceFile = z.infer<typeof ServiceFile>;

/** Returns the service of this data folder, `null` if none runs here. A crash can leave a file that names a dead process. */
export function readServiceFile(file: string): ServiceFile | null {
  const service = readHolder(file, ServiceFile);
  return service !== undefined && stateOf(service) === 'alive' ? service : null;
}
