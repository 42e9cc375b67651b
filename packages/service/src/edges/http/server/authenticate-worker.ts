import { isAtLeast } from '@runyard/contract/wire/access';
import type { KeyDirectory } from '../../../team/access/keys/directory.ts';
import type { WorkerPrincipal } from '../../workers/principal.ts';
import { bearerToken } from './authorize.ts';

/** Returns the owner of the key in a worker's `Authorization` header; null: malformed, unknown, expired or revoked, or that of a browser session or a viewer. */
export async function authenticateWorker(
  keys: KeyDirectory,
  authorization: string | undefined,
): Promise<WorkerPrincipal | null> {
  const token = bearerToken(authorization ?? '');
  const principal = token === '' ? null : await keys.authenticate(token);
  if (principal === null || principal.kind === 'session' || !isAtLeast(principal.role, 'member')) return null;
  return principal;
}
