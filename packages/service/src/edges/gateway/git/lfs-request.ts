import { Repository } from '@runyard/contract/environments/repositories';
import { gitGatewayPath } from '../../../team/environments/git-path.ts';

/** A request of Git LFS (github.com/git-lfs/git-lfs, docs/api): the batch API, or the transfer of one object. */
export type LfsRequest =
  | { readonly kind: 'batch'; readonly repository: Repository }
  | { readonly kind: 'download' | 'upload'; readonly repository: Repository; readonly object: LfsObject };

/** An object by its SHA-256, in 64 hexadecimal digits, and its size in bytes. */
export interface LfsObject {
  readonly oid: string;
  readonly size: number;
}

const pattern = /^\/([A-Za-z0-9_.-]+)\/([A-Za-z0-9_.-]+?)\.git\/info\/lfs\/objects\/(batch|[0-9a-f]{64})$/;

/** Parses the raw path of a request (from the server root on, without query) and the query. Returns undefined for other requests. */
export function lfsRequestOf(method: string, path: string, query: URLSearchParams): LfsRequest | undefined {
  if (!path.startsWith(gitGatewayPath)) return undefined;
  const [, owner, repo, rest] = pattern.exec(path.slice(gitGatewayPath.length)) ?? [];
  const repository = Repository.safeParse({ owner, repo });
  if (!repository.success || rest === undefined) return undefined;
  if (rest === 'batch') return method === 'POST' ? { kind: 'batch', repository: repository.data } : undefined;
  const size = query.get('size') ?? '';
  if (!/^\d{1,15}$/.test(size) || (method !== 'GET' && method !== 'PUT')) return undefined;
  const object = { oid: rest, size: Number(size) };
  return { kind: method === 'GET' ? 'download' : 'upload', repository: repository.data, object };
}
