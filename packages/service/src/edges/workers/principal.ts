import type { Principal } from '../../team/access/keys/principal.ts';

/** The owner of the key that opened a worker's connection. */
export type WorkerPrincipal = Pick<Principal, 'keyId' | 'teamId' | 'isOperator' | 'creator'>;

/** Worker names with this prefix are reserved for the operator: such workers serve the hosted pool of all teams. */
export const operatorNames = 'runyard';

/** Returns the team whose runs a worker of this name serves, or null for the hosted pool. `not_allowed`: only the operator may use the name. */
export function poolTeamOf(principal: WorkerPrincipal, workerId: string): string | null | 'not_allowed' {
  if (!workerId.startsWith(operatorNames)) return principal.teamId;
  return principal.isOperator ? null : 'not_allowed';
}
