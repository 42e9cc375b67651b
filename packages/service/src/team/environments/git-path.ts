import type { Repository } from '@runyard/contract/environments/repositories';
/** Path of the git gateway below the server root. */
export const gitGatewayPath = '/api/v1/gateway/git';

/** Returns the path, below the server root, at which an agent clones `repository`. */
export function gatewayPathOf(repository: Repository): string {
  return `${gitGatewayPath}/${repository.owner}/${repository.repo}.git`;
}
