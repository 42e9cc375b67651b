import type { ArtifactResponse } from '@runyard/contract/artifacts';
import type { ApiKey, CreateKeyRequest, CreateKeyResponse } from '@runyard/contract/keys';
import { LiveEvent } from '@runyard/contract/live-events';
import type { RunAgentRequest, RunAgentResponse } from '@runyard/contract/run-request';
import type { ListRunsResponse, RunItem } from '@runyard/contract/runs';
import { type Context, requireApiKey, requireOrigin } from './context.ts';
import { Failure } from './failure.ts';

export interface Api {
  createRun(request: RunAgentRequest): Promise<RunAgentResponse>;
  getRun(runId: string): Promise<RunItem>;
  listRuns(query: Record<string, string | number | string[]>): Promise<ListRunsResponse>;
  cancelRun(runId: string): Promise<void>;
  getArtifact(uid: string): Promise<ArtifactResponse>;
  listKeys(): Promise<{ keys: ApiKey[] }>;
  createKey(request: CreateKeyRequest): Promise<CreateKeyResponse>;
  deleteKey(uid: string): Promise<void>;
  events(runId: string, signal: AbortSignal): AsyncGenerator<LiveEvent>;
}

class ApiFailure extends Failure {
  readonly retryable: boolean;
  constructor(message: string, retryable: boolean) {
    super(message);
    this.retryable = retryable;
  }
}
export const isRetryable = (error: unknown): boolean => error instanceof ApiFailure && error.retryable;

export function connect(context: Context): Api {
  const base = `${requireOrigin(context)}/api/v1`;
  const key = requireApiKey(context);
  async function call(method: string, path: string, body?: unknown): Promise<any> {
    const response = await fetch(base + path, {
      method,
      headers: { authorization: `Bearer ${key}`, ...(body ? { 'content-type': 'application/json' } : {}) },
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
    const json: any = await response.json();
    if (!response.ok)
      throw new ApiFailure(`${json.title}: ${json.detail ?? ''} ${JSON.stringify(json.errors ?? '')}`, json.retryable);
    return json;
  }
  return {
    createRun: (request) => call('POST', '/agent/runs', request),
    getRun: (id) => call('GET', `/agent/runs/${id}`),
    listRuns: (query) =>
      call(
        'GET',
        `/agent/runs?${new URLSearchParams(Object.entries(query).flatMap(([k, v]) => [v].flat().map((x) => [k, String(x)] as [string, string])))}`,
      ),
    cancelRun: (id) => call('POST', `/agent/runs/${id}/cancel`),
    getArtifact: (id) => call('GET', `/agent/artifacts/${id}`),
    listKeys: () => call('GET', '/keys'),
    createKey: (request) => call('POST', '/keys', request),
    deleteKey: (id) => call('DELETE', `/keys/${id}`),
    async *events(id, signal) {
      const response = await fetch(`${base}/agent/runs/${id}/events`, {
        headers: { authorization: `Bearer ${key}` },
        signal,
      });
      let buffer = '';
      for await (const chunk of response.body as any) {
        buffer += Buffer.from(chunk).toString('utf8');
        let end = buffer.indexOf('\n\n');
        while (end >= 0) {
          const data = buffer
            .slice(0, end)
            .split('\n')
            .filter((l) => l.startsWith('data: '))
            .map((l) => l.slice(6))
            .join('\n');
          buffer = buffer.slice(end + 2);
          if (data) yield LiveEvent.parse(JSON.parse(data));
          end = buffer.indexOf('\n\n');
        }
      }
    },
  };
}
