import { Repository } from '@runyard/contract/environments/repositories';
import { gitGatewayPath } from '../../../team/environments/git-path.ts';

/** A request of git's smart HTTP protocol (gitprotocol-http); other requests to a code host are refused. */
export interface GitRequest {
  readonly repository: Repository;
  readonly service: 'git-upload-pack' | 'git-receive-pack';
  /** `refs`: `GET info/refs?service=…`; `rpc`: `POST {service}`. */
  readonly step: 'refs' | 'rpc';
}

const pattern = /^\/([A-Za-z0-9_.-]+)\/([A-Za-z0-9_.-]+?)\.git\/(info\/refs|git-upload-pack|git-receive-pack)$/;

/** Parses the raw path of a request (from the server root on, without query) and the query. Returns undefined if the request is not smart
 * HTTP. */
export function gitRequestOf(method: string, path: string, query: URLSearchParams): GitRequest | undefined {
  if (!path.startsWith(gitGatewayPath)) return undefined;
  const [, owner, repo, rest] = pattern.exec(path.slice(gitGatewayPath.length)) ?? [];
  const repository = Repository.safeParse({ owner, repo });
  if (!repository.success) return undefined;
  const step = rest === 'info/refs' ? 'refs' : 'rpc';
  const service = step === 'refs' ? query.get('service') : rest;
  if (service !== 'git-upload-pack' && service !== 'git-receive-pack') return undefined;
  if (method !== (step === 'refs' ? 'GET' : 'POST')) return undefined;
  return { repository: repository.data, service, step };
}
