import { readHolder } from '@runyard/system/claim';
import { isIdentity, type ProcessIdentity, stateOf } from '@runyard/system/process-identity';

/** The file that the service writes about itself while it listens. */
export interface ServiceFile extends ProcessIdentity {
  readonly base_url: string;
  /** The parent process of the service. When it ends, the service ends too. Absent if the service was started without a supervisor. */
  readonly parent?: ProcessIdentity;
}

const isServiceFile = (value: unknown): value is ServiceFile =>
  isIdentity(value) &&
  'base_url' in value &&
  typeof value.base_url === 'string' &&
  (!('parent' in value) || isIdentity(value.parent));

/**
 * Returns the running service of this data folder. Returns `null` if no service runs here, even if a crash has left a file that names a
 * dead process.
 */
export function readServiceFile(file: string): ServiceFile | null {
  const service = readHolder(file, isServiceFile);
  return service !== undefined && stateOf(service) === 'alive' ? service : null;
}

/**
 * Returns the URL of the service of this data folder, or `null` if no service runs here. Also returns `null` if the parent of the
 * service was killed. Such a service is stopping, although it still answers for a moment.
 */
export function urlOfService(file: string): string | null {
  const service = readServiceFile(file);
  if (service === null || (service.parent && stateOf(service.parent) === 'gone')) return null;
  return service.base_url;
}
