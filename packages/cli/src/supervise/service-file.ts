import { readHolder } from '@runyard/system/claim';
import { isIdentity, type ProcessIdentity, stateOf } from '@runyard/system/process-identity';

/** The file that the service writes about itself while it listens. */
export interface ServiceFile extends ProcessIdentity {
  readonly base_url: string;
}

const isServiceFile = (value: unknown): value is ServiceFile =>
  isIdentity(value) && 'base_url' in value && typeof value.base_url === 'string';

/** Returns the service of this data folder, `null` if none runs here. A crash can leave a file that names a dead process. */
export function readServiceFile(file: string): ServiceFile | null {
  const service = readHolder(file, isServiceFile);
  return service !== undefined && stateOf(service) === 'alive' ? service : null;
}
