import type { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import { workerCachePath } from '@runyard/contract/workers/worker-cache';
import type { ServiceConnection } from '../service/connection.ts';

/** An object that an earlier run left on the worker. */
export interface KeptObject {
  /** SHA-256 of the whole content, in hexadecimal digits. */
  readonly sha256: string;
  readonly bytes: number;
  readonly content: IncomingMessage;
}

export interface WorkspaceAnswer {
  readonly status: number;
  readonly bytes?: number | undefined;
  readonly reason?: string | undefined;
}

/**
 * Stores objects of runs on the worker for later runs. A run does not need these objects: if the cache fails, the agent does the work
 * itself.
 */
export interface WorkerCache {
  /** Returns undefined if the worker does not have the object. Rejects if the worker does not answer. */
  get(name: string, signal: AbortSignal): Promise<KeptObject | undefined>;
  /**
   * Finds a kept workspace, fills the empty workspace and home of this sandbox with a copy of it, or keeps a copy of them. `status` is an
   * HTTP status: 404 if there is no usable copy, 409 if a file is open for writing, 413 with a reason if there is no room, and 501 if this
   * kind of sandbox has no such copies. Rejects if the worker does not answer.
   */
  workspace(action: 'find' | 'use' | 'keep', name: string, signal: AbortSignal): Promise<WorkspaceAnswer>;
  /** Returns true if the worker has stored the content. */
  put(name: string, content: Readable, signal: AbortSignal): Promise<boolean>;
}

const idleTimeoutMs = 60_000;
/** The worker sends nothing while it copies. */
const longestCopyMs = 900_000;
const mostAnswerBytes = 4096;

/** Returns the cache of the worker; undefined if the agent has no relay of a worker. */
export function workerCache(connection: ServiceConnection): WorkerCache | undefined {
  if (connection.relaySocket === undefined) return undefined;
  const pathOf = (name: string): string => `${workerCachePath}/${name}`;
  return {
    async get(name, signal) {
      const answer = await connection.open({ method: 'GET', path: pathOf(name), signal, idleTimeoutMs });
      const sha256 = answer.headers['x-content-sha256'];
      const bytes = Number(answer.headers['content-length']);
      if (answer.statusCode === 200 && typeof sha256 === 'string' && Number.isSafeInteger(bytes))
        return { sha256, bytes, content: answer };
      answer.destroy();
      if (answer.statusCode === 404) return undefined;
      throw new Error(`the worker answered ${answer.statusCode}`);
    },
    async workspace(action, name, signal) {
      const path = `${pathOf(name)}/${action}`;
      const request = { method: 'POST', path, body: '', signal, idleTimeoutMs: longestCopyMs } as const;
      const { status, body } = await connection.call(request, () => mostAnswerBytes);
      return { status, ...(body.length === 0 ? {} : JSON.parse(body.toString())) };
    },
    async put(name, content, signal) {
      const answer = await connection
        .open({ method: 'PUT', path: pathOf(name), body: content, signal, idleTimeoutMs })
        .catch(() => undefined);
      answer?.resume();
      return answer?.statusCode === 204;
    },
  };
}
