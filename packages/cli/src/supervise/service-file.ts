import { readHolder } from '@runyard/system/claim';
import { isIdentity, type ProcessIdentity, stateOf } from '@runyard/system/process-identity';

/** The file that the service writes about itself while it listens. */
export interface ServiceFile extends ProcessIdentity {
  readonly base_url: string;
  /** The process with which the service ends; absent: the service runs alone. */
  readonly parent?: ProcessIdentity;
}

const isServiceFile = (value: unknown): value is ServiceFile =>
  isIdentity(value) &&
  'base_url' in value &&
  typeof value.base_url === 'string' &&
  (!('parent' in value) || isIdentity(value.parent));

/** Returns the service of this data folder; `null` if no service runs here. A crash can leave a file that names a dead process. */
export function readServiceFile(file: string): ServiceFile | null {
  const service = readHolder(file, isServiceFile);
  return service !== undefined && stateOf(service) === 'alive' ? service : null;
}

/**
 * Returns the URL of the service of this data folder; `null` if no service runs here. Also returns `null` if the service's parent was
 * killed, because such a service is stopping although it still answers for a moment.
 */
export function urlOfService(file: string): string | null {
  const service = readServiceFile(file);
  if (service === null || (service.parent && stateOf(service.parent) === 'gone')) return null;
  return service.base_url;
}
