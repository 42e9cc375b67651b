/** Whose key opened a worker's connection. */
export interface WorkerPrincipal {
  readonly keyId: string;
  readonly teamId: string;
  readonly isOperator: boolean;
}

/** Names that begin so are reserved for the operator, whose workers of such a name serve the hosted pool of all teams. */
export const operatorNames = 'runyard';

/** The team whose runs a worker of this name serves; null: the hosted pool. `not_allowed`: the name is the operator's. */
export function poolTeamOf(principal: WorkerPrincipal, workerId: string): string | null | 'not_allowed' {
  if (!workerId.startsWith(operatorNames)) return principal.teamId;
  return principal.isOperator ? null : 'not_allowed';
}
