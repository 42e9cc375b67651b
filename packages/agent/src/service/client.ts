import type { Readable } from 'node:stream';
import type {
  AgentInbox,
  AgentTask,
  ReportArtifact,
  ReportArtifactResponse,
} from '@runyard/contract/agent/agent-protocol';
import type { FinishTask, FinishTaskResponse } from '@runyard/contract/agent/finish-task';
import type { AgentEventAck } from '@runyard/contract/runs/agent-events';
import type { UploadSnapshot, UploadSnapshotResponse } from '@runyard/contract/runs/handoff';
import { storableJson } from '@runyard/contract/wire/storable-json';
import type { z } from 'zod';
import { newId } from '../new-id.ts';
import type { Lane, ServiceConnection } from './connection.ts';
import { type RetryOptions, retryingCall } from './retry.ts';

export interface ServiceClientOptions extends RetryOptions {
  readonly connection: ServiceConnection;
}

export interface CallOptions {
  signal?: AbortSignal | undefined;
  /** One try of the call fails if the service sends nothing for this time. Default: 30 s; for uploads: 60 s. */
  idleTimeoutMs?: number;
  lane?: Lane;
}

export interface UploadOptions extends CallOptions {
  /** SHA-256 of the bytes. The service refuses other bytes. */
  sha256?: Buffer | undefined;
}

/** Options of a call whose answer is JSON. */
export interface AskOptions extends CallOptions {
  /** The body, which is sent as JSON. */
  body?: object;
  /** Sent with each try of the call, so that the service does the work only once. */
  idempotencyKey?: string;
  /** Statuses after which this call is not repeated but rejects as refused. Other calls are repeated after these statuses. */
  finalStatuses?: readonly number[];
}

/**
 * The calls of the agent to the service. Each call is repeated until the service answers it; `retryingCall` lists the ways in which it can
 * fail.
 */
export interface ServiceClient {
  readonly connection: ServiceConnection;
  resolvePrompt(options?: CallOptions): Promise<AgentTask>;
  /** Sends events; `body` is a serialised `AgentEventBatch`. */
  sendEvents(body: string, options?: CallOptions): Promise<z.infer<typeof AgentEventAck>>;
  /** Waits at most `waitMs` for new items of the inbox. `position` shows which items the agent already has. */
  pollInbox(
    waitMs: number,
    position: { after: number; interrupted: number; changes: number; held: number },
    options?: CallOptions,
  ): Promise<AgentInbox>;
  reportArtifact(
    body: z.infer<typeof ReportArtifact>,
    options?: CallOptions,
  ): Promise<z.infer<typeof ReportArtifactResponse>>;
  /** Begins a snapshot. The files of the snapshot are uploaded one by one. */
  uploadSnapshot(body: UploadSnapshot, options?: CallOptions): Promise<UploadSnapshotResponse>;
  /**
   * Sends `size` bytes with PUT. `size` is undefined if the number of bytes is not known. `open` returns a new stream of the bytes for each
   * try.
   */
  upload(
    path: string,
    open: () => Readable,
    size: number | undefined,
    contentType: string,
    options?: UploadOptions,
  ): Promise<void>;
  download(path: string, maxBytes: number, options?: CallOptions): Promise<Buffer>;
  /** Makes any other call; `path` is below `/harness-support/`. */
  ask<T>(method: 'GET' | 'POST', path: string, options?: AskOptions): Promise<T>;
  /** Reports the end of a turn and returns what to do next. */
  finishTask(body: FinishTask, options?: CallOptions): Promise<FinishTaskResponse>;
  reportShutdown(reason: string, options?: CallOptions): Promise<void>;
}

const harnessSupport = '/api/v1/harness-support';
const maxAnswerBytes = 64 * 1024 * 1024;
const defaultIdleTimeoutMs = 30_000;
const uploadIdleTimeoutMs = 60_000;
/** After the last byte, the service answers when the file is durable. A slow disk or bucket needs a second for 16 MB. */
const storedBytesPerMs = 16_000;
const inReportsLane = <T extends CallOptions>(options: T): T => ({ ...options, lane: 'reports' });

export function serviceClient({ connection, ...retry }: ServiceClientOptions): ServiceClient {
  const call = retryingCall(connection, retry);

  const get = (path: string, maxBytes: number, { signal, lane, idleTimeoutMs }: CallOptions = {}) =>
    call({
      request: () => ({
        method: 'GET',
        path,
        signal,
        lane,
        idleTimeoutMs: idleTimeoutMs ?? defaultIdleTimeoutMs,
      }),
      maxBytes,
      signal,
    });

  /** Sends a request, with `json` as the body if it is defined. Returns the parsed answer. */
  async function send<T>(
    method: 'GET' | 'POST',
    path: string,
    json: string | undefined,
    { signal, lane, idleTimeoutMs, idempotencyKey, finalStatuses }: Omit<AskOptions, 'body'> = {},
  ): Promise<T> {
    const answer = await call({
      request: () => ({
        method,
        path: `${harnessSupport}/${path}`,
        headers: {
          ...(json === undefined ? {} : { 'content-type': 'application/json' }),
          ...(idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }),
        },
        body: json,
        signal,
        lane,
        idleTimeoutMs: idleTimeoutMs ?? defaultIdleTimeoutMs,
      }),
      maxBytes: maxAnswerBytes,
      signal,
      finalStatuses,
    });
    return JSON.parse(answer.toString() || '{}') as T;
  }

  return {
    connection,
    resolvePrompt: (options = {}) => send('POST', 'resolve-prompt', '{}', inReportsLane(options)),
    sendEvents: (body, options = {}) => send('POST', 'events', body, inReportsLane(options)),
    pollInbox: (waitMs, { after, interrupted, changes, held }, options = {}) =>
      send(
        'GET',
        `inbox?wait_ms=${waitMs}&after=${after}&interrupted=${interrupted}&changes=${changes}&held=${held}`,
        undefined,
        inReportsLane({ idleTimeoutMs: waitMs + 15_000, ...options }),
      ),
    // With the idempotency key, a repeated request does not store a second artifact if the first answer was lost.
    reportArtifact: (body, options = {}) =>
      send('POST', 'report-artifact', storableJson(body), { ...options, idempotencyKey: newId() }),
    uploadSnapshot: (body, options = {}) => send('POST', 'upload-snapshot', storableJson(body), options),
    upload: async (path, open, size, contentType, { signal, idleTimeoutMs, sha256 } = {}) => {
      await call({
        request: () => ({
          method: 'PUT',
          path,
          headers: {
            'content-type': contentType,
            ...(sha256 === undefined ? {} : { 'content-digest': `sha-256=:${sha256.toString('base64')}:` }),
            ...(size === undefined ? { 'transfer-encoding': 'chunked' } : { 'content-length': String(size) }),
          },
          body: size === 0 ? '' : open(),
          signal,
          idleTimeoutMs: idleTimeoutMs ?? uploadIdleTimeoutMs + (size ?? 0) / storedBytesPerMs,
        }),
        maxBytes: maxAnswerBytes,
        signal,
      });
    },
    download: get,
    ask: (method, path, { body, ...options } = {}) =>
      send(method, path, body === undefined ? undefined : storableJson(body), options),
    finishTask: async (body, options = {}) => {
      const { next = 'leave', ...rest } = await send<Partial<FinishTaskResponse>>(
        'POST',
        'finish-task',
        storableJson(body),
        inReportsLane(options),
      );
      return { next, ...rest };
    },
    reportShutdown: async (reason, options = {}) => {
      await send('POST', 'report-shutdown', storableJson({ reason }), inReportsLane(options));
    },
  };
}
