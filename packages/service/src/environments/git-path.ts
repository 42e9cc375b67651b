import type { Repository } from '@runyard/contract/environments';
/** Path of the git gateway below the server root. */
export const gitGatewayPath = '/api/v1/gateway/git';

/** Where an agent clones `repository` from, below the server root. */
export function gatewayPathOf(repository: Repository): string {
  return `${gitGatewayPath}/${repository.owner}/${repository.repo}.git`;
}
